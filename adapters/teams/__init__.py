"""The Teams platform, with Microsoft's Bot Framework SDK as transport only. Imported only when Teams is configured."""
