"""The documents MCP server: what people keep for themselves, for a channel or for everybody, found by words.

It serves nobody of whom it is not told, signed, who asks and where (`servers/requester.py`).

`python -m servers.documents [--http PORT [--host HOST]]`; the file is `DOCUMENTS_DB`, by default `data/documents.db`.
"""
