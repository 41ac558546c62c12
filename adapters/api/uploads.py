"""`POST /upload`: a file that goes with a message later."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from pydantic import ConfigDict, Field

from adapters.api.models import Shape
from adapters.api.operations import Answer, ApiCall, Operation, json_answer
from adapters.shared.problems import Problem
from adapters.shared.requests import BodyNotReadError
from adapters.shared.uploads import take_upload
from bot.files import BUSY_SECONDS, LARGEST_FILE, MOST_UNUSED, UploadRefused
from bot.services import Services


class UploadedShape(Shape):
    """A file that was read."""

    model_config = ConfigDict(frozen=True, title="Uploaded")
    id: str = Field(description="Name it in `files` of a message within an hour.")
    name: str
    size: int = Field(description="Bytes.")
    characters: int = Field(description="Of the text that was read from it.")
    reason: str = Field(description="Why it could not be read; empty: it was.")


class UploadResources:
    """Takes files."""

    def __init__(self, services: Services) -> None:
        self._files = services.files

    def operations(self) -> Sequence[Operation]:
        """What can be done."""
        return [
            Operation(
                "POST",
                "/upload",
                "uploadFile",
                "Has a file read, to be sent with a message.",
                self.upload,
                {201: Answer("It was read, or says why not.", UploadedShape)},
                scope="run",
                takes_file=True,
                problems=(409,),
                tag="files",
                description=f"A form with one file, or the file itself and `?name=`. At most {LARGEST_FILE // 1024**2} "
                f"MB, and {MOST_UNUSED} files that no message has taken.",
            )
        ]

    async def upload(self, call: ApiCall) -> web.Response:
        """`POST /upload`."""
        try:
            row = await take_upload(call.request, self._files, call.principal.person.person_id)
        except BodyNotReadError as error:
            raise Problem(error.status, str(error)) from None
        except UploadRefused as refused:
            if refused.is_busy:
                raise Problem(503, refused.sentence, retry_after=BUSY_SECONDS) from None
            raise Problem(409, refused.sentence) from None
        shape = UploadedShape(id=row.file_id, name=row.name, size=row.size, characters=len(row.text), reason=row.reason)
        return json_answer(shape, status=201)
