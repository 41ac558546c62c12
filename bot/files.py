"""Files that people hand over: fetched from their platform or uploaded, read once, and kept as text.

What is kept never changes, so that the id of a file names what is in it. The file itself is not kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from bot.crypto import NewId
from bot.domain import Clock, ConversationReference, FileReference, Message, Notice
from bot.outbox import Outbox, notice
from bot.platform import FileNotFetched, Platform, PostFailed
from bot.records import deliveries, files, thread_owners
from bot.records.database import Database
from bot.records.files import FileRow
from bot.records.locks import UNLOCKED, person_lock
from bot.repeated_failures import RepeatedFailure
from bot.safe_text import visible, visible_line
from bot.task_threads import conversation_of
from graph.files import CarriedFile, carried
from graph.json_values import storable
from translations import gettext as _
from translations import in_shared_language, ngettext

log = structlog.get_logger(__name__)
FILES = "files"
"""In the body of a message: its references."""
UPLOAD = "upload"
"""In the source of a reference: the id of what was uploaded before."""
LARGEST_FILE = 20 * 1024 * 1024
"""Bytes of a file that is read. Our own choice: a handbook with pictures; Slack takes 1 GB, Teams 250 GB."""
LARGEST_NOTED = 2**31 - 1
"""Bytes of a file as they are kept; of larger ones, so many."""
MOST_FILES = 10
"""Files of one message that are read; Slack and Teams take as many in one message."""
MOST_REFERENCES = 20
"""Files of one message that are named at all; Slack and Teams send no more."""
LONGEST_NAME = 200
"""Characters of a file's name; file systems take 255 bytes."""
LONGEST_TEXT = 2_000_000
"""Characters of a file that are kept. Our own choice: a thousand pages."""
_STEP = 50_000
"""Characters of it that are made visible at a time, which holds up everything else for some milliseconds even where
each of them is hidden."""
MOST_UNUSED = 20
"""Files that somebody may have uploaded without having sent a message with them."""
UNUSED_SECONDS = 3600.0
"""So long an upload waits for its message."""
SWEPT_EVERY = 600.0
"""Seconds after which it is looked for uploads that waited for too long."""
LARGEST_ARRIVING = 48 * 1024 * 1024
"""Bytes of all uploads that are on their way: of the 64 MiB for all bodies, what leaves room for messages."""
BUSY_SECONDS = 5.0
"""After so long it makes sense to try again."""
MOST_FETCHES = 5
"""Tries to fetch a file whose platform does not give it now, over 15 seconds or as long as it asks to wait; then the
turn goes on without."""
MOST_AT_ONCE = 4
"""Files that are held in memory at a time, of whoever: so many that are uploaded, and as many that are fetched."""


@dataclass(frozen=True, slots=True)
class FileText:
    """What is in a file."""

    text: str
    """Markdown. Before each page of a file with pages stands a line of its own, `<!-- page 3 -->`."""
    missing: int = 0
    """Characters that were left out at its end."""


@dataclass(frozen=True, slots=True)
class FileUnreadable:
    """A file cannot be read."""

    reason: str
    """Why, for people; ends a sentence that begins with the file's name: "it is encrypted"."""


class FileReader(Protocol):
    """Reads files."""

    async def read(self, name: str, media_type: str, content: bytes) -> FileText | FileUnreadable:
        """What is in a file. Whatever it holds, this ends, holds nobody up, and raises nothing but cancellation.

        Args:
            name: as its owner calls it; only its ending counts.
            media_type: as was said; may be empty or wrong.
        """
        ...


class UploadRefused(Exception):  # noqa: N818  # an answer, no defect
    """An upload is not kept. `sentence`: why, for people; `is_busy`: trying again helps."""

    def __init__(self, sentence: str, *, is_busy: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.is_busy = is_busy


class Files:
    """Takes in what people hand over."""

    def __init__(
        self,
        database: Database,
        reader: FileReader,
        platforms: Mapping[str, Platform],
        outbox: Outbox,
        clock: Clock,
        *,
        new_id: NewId,
    ) -> None:
        self._database = database
        self._reader = reader
        self._platforms = platforms
        self._outbox = outbox
        self._clock = clock
        self._new_id = new_id
        self._arriving: Counter[str] = Counter()
        """Person id → bytes of what they are uploading."""
        self._uploading = asyncio.Semaphore(MOST_AT_ONCE)
        self._fetching = asyncio.Semaphore(MOST_AT_ONCE)

    # ------------------------------------------------------------------------------------------- uploads

    def is_busy(self) -> bool:
        """Whether nothing more is taken in at the moment."""
        return self._uploading.locked()

    @contextmanager
    def arriving(self, owner: str, size: int | None) -> Iterator[None]:
        """Within it the body of an upload arrives. Of one person, no more than one of the largest files does at a time,
        so that nobody keeps the others from uploading. Raises `UploadRefused`.

        Args:
            size: bytes; `None`: it is not said.
        """
        size = LARGEST_FILE if size is None else min(size, LARGEST_FILE)
        if self._arriving[owner] + size > LARGEST_FILE or self._arriving.total() + size > LARGEST_ARRIVING:
            raise UploadRefused(too_many_files(), is_busy=True)
        self._arriving[owner] += size
        try:
            yield
        finally:
            self._arriving[owner] -= size
            if not self._arriving[owner]:
                del self._arriving[owner]

    async def upload(self, owner: str, name: str, media_type: str, content: bytes) -> FileRow:
        """Read and keep what somebody uploads, until a message takes it. A file that cannot be read is kept with the
        reason. Raises `UploadRefused`."""
        if self._uploading.locked():
            raise UploadRefused(too_many_files(), is_busy=True)
        async with self._uploading:
            async with self._database.reading() as tx:
                if await files.unused_of(tx, owner) >= MOST_UNUSED:
                    raise UploadRefused(_("You uploaded {most} files without sending them.").format(most=MOST_UNUSED))
            row = await self._read(owner, FileReference(name, media_type, len(content)), content)
        async with self._database.writing_apart(person_lock(owner)) as tx:
            await files.drop_unused(tx, self._clock() - UNUSED_SECONDS)
            if await files.unused_of(tx, owner) >= MOST_UNUSED:
                raise UploadRefused(_("You uploaded {most} files without sending them.").format(most=MOST_UNUSED))
            await files.add(tx, row)
        return row

    @asynccontextmanager
    async def forgetting(self) -> AsyncIterator[None]:
        """While the block runs, uploads that no message took are forgotten in time."""
        sweeping = asyncio.create_task(self._keep_sweeping(), name="unused uploads")
        try:
            yield
        finally:
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)

    async def _keep_sweeping(self) -> None:
        failure = RepeatedFailure("uploads_not_forgotten")
        while True:
            try:
                await self.forget_unused()
            except Exception as error:  # noqa: BLE001  # the records fail in many ways, and may be back any time
                failure.failed(error)
            else:
                failure.worked()
            await asyncio.sleep(SWEPT_EVERY)

    async def forget_unused(self) -> None:
        """Forget what waited for its message for too long."""
        async with self._database.writing_apart(UNLOCKED) as tx:  # one statement
            await files.drop_unused(tx, self._clock() - UNUSED_SECONDS)

    async def references(self, owner: str, ids: Sequence[str], message_key: str) -> tuple[FileReference, ...]:
        """References to what somebody has uploaded and sends now. Raises `UploadRefused`.

        Args:
            message_key: of the message that they send; it may have taken the files already, when nobody heard of it.
        """
        if len(set(ids)) != len(ids):
            raise UploadRefused(_("The same file is there twice."))
        if len(ids) > MOST_FILES:
            raise UploadRefused(_("At most {most} files can be sent at a time.").format(most=MOST_FILES))
        found = []
        async with self._database.reading() as tx:
            for file_id in ids:
                row = await files.get(tx, file_id)
                if row is None or row.owner != owner or row.message_key not in (None, message_key):
                    raise UploadRefused(_("One of the files isn’t available any more. Add it again."))
                found.append(FileReference(row.name, row.media_type, row.size, {UPLOAD: row.file_id}))
        return tuple(found)

    # ------------------------------------------------------------------------------------- files of messages

    async def taken_in(self, message: Message, thread_id: str, tries: int = 0) -> list[CarriedFile]:
        """What a message carries of its files, each fetched and read once. Its author is told what could not be read.
        Raises `PostFailed` when one cannot be had now.

        Args:
            tries: how often the message was put off before.
        """
        async with self._database.reading() as tx:
            known = {row.number: row for row in await files.of_message(tx, message.key)}
        for number, reference in enumerate(message.files):
            if number not in known:
                row = await self._taken_in(message, reference, number, thread_id, tries)
                async with self._database.writing(thread_id) as tx:
                    if await thread_owners.owner_of(tx, thread_id) == thread_owners.DELETED:
                        return []  # meanwhile: nothing of it is kept
                    await files.add(tx, row)
                known[number] = row
        async with self._database.writing(thread_id) as tx:
            await deliveries.forget_sources(tx, message.key)
        rows = [known[number] for number in range(len(message.files)) if number in known]
        if unread := [row for row in rows if row.reason]:
            with in_shared_language():
                sentence = _not_read(unread)
            async with self._database.writing(thread_id) as tx:
                told = notice(f"files:{message.key}", thread_id, Notice(sentence, "warning"))
                await self._outbox.say(tx, told)
        return carried([(row.file_id, row.name, row.size, row.text, row.missing, row.reason) for row in rows])

    async def _taken_in(
        self, message: Message, reference: FileReference, number: int, thread_id: str, tries: int
    ) -> FileRow:
        place, owner = message.place, message.author.person_id
        async with self._fetching:
            try:
                known, content = await self._content(reference, number, place)
            except PostFailed as failure:
                if tries + 1 < MOST_FETCHES and not failure.permanent:
                    raise
                log.warning("file_not_fetched", platform=place.platform, cause=str(failure))
                known, content = reference, FileUnreadable(_("I couldn’t get it. Send it again later"))
            row = await self._read(owner, known, content)
        return replace(row, thread_id=thread_id, message_key=message.key, number=number)

    async def _content(
        self, reference: FileReference, number: int, place: ConversationReference
    ) -> tuple[FileReference, bytes | FileUnreadable]:
        """A file, with what was learned of it meanwhile."""
        if (reason := self._refused(reference, number, place)) is not None:
            return reference, FileUnreadable(reason)
        try:
            fetched = await self._platforms[place.platform].fetch_file(reference, place, LARGEST_FILE)
        except FileNotFetched as failure:
            log.warning("file_not_fetched", platform=place.platform, cause=failure.reason)
            return replace(reference, name=reference.name or failure.name), FileUnreadable(failure.reason)
        name, media_type = reference.name or fetched.name, reference.media_type or fetched.media_type
        return replace(reference, name=name, media_type=media_type), fetched.content

    def _refused(self, reference: FileReference, number: int, place: ConversationReference) -> str | None:
        """Why a file is not even fetched."""
        if number >= MOST_FILES:
            return _("only {most} files of a message are read").format(most=MOST_FILES)
        if reference.refused:
            return reference.refused
        if is_upload(reference):
            return _("it isn’t available any more")
        if reference.size is not None and reference.size > LARGEST_FILE:
            return too_large()
        return None if place.platform in self._platforms else _("its chat isn’t connected")

    async def _read(self, owner: str, reference: FileReference, content: bytes | FileUnreadable) -> FileRow:
        name = visible_line(storable(reference.name), LONGEST_NAME) or _("unnamed file")
        size = len(content) if isinstance(content, bytes) else min(reference.size or 0, LARGEST_NOTED)
        read: FileText | FileUnreadable
        if isinstance(content, FileUnreadable):
            read = content
        elif size > LARGEST_FILE:
            read = FileUnreadable(too_large())
        elif not size:
            read = FileUnreadable(_("it is empty"))
        else:
            read = await self._reader.read(storable(reference.name)[-LONGEST_NAME:], reference.media_type, content)
        text, missing, reason = "", 0, ""
        if isinstance(read, FileText):
            text, left_out = await asyncio.to_thread(_kept_text, read.text)
            missing = read.missing + left_out
            if not text.strip():
                text, missing, reason = "", 0, _("there is no text in it")
        else:
            reason = read.reason
        log.info("file_read", size=size, characters=len(text), missing=missing, reason=reason)
        return FileRow(
            file_id=f"file_{self._new_id()}",
            owner=owner,
            thread_id=None,
            message_key=None,
            number=None,
            name=name,
            media_type=storable(reference.media_type)[:LONGEST_NAME],
            size=size,
            text=text,
            missing=missing,
            reason=reason,
            created_at=self._clock(),
        )

    # --------------------------------------------------------------------------------------- what was read

    async def of_thread(self, thread_id: str, file_id: str) -> FileRow | None:
        """A file of a conversation, by the thread of it or of a task in it; `None`: there is none that was read."""
        async with self._database.reading() as tx:
            row = await files.get(tx, file_id)
        return row if row is not None and row.thread_id == conversation_of(thread_id) and not row.reason else None


def _kept_text(text: str) -> tuple[str, int]:
    """What is kept of a text, and how many characters are not. Hidden text is where instructions are hidden: the model
    sees that something is there."""
    text = storable(text)
    shown: list[str] = []
    start = length = 0
    while start < len(text) and length <= LONGEST_TEXT:
        end = min(start + _STEP, len(text))
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        shown.append(visible(text[start:end]))
        start, length = end, length + len(shown[-1])
    return "".join(shown)[:LONGEST_TEXT], max(0, length - LONGEST_TEXT) + len(text) - start


def _not_read(rows: Sequence[FileRow]) -> str:
    reasons = "\n".join(f"{row.name}: {row.reason}" for row in rows)
    told = ngettext("I couldn’t read a file:", "I couldn’t read {count} files:", len(rows)).format(count=len(rows))
    return f"{told}\n{reasons}"


def too_many_files() -> str:
    """Returns what is said to whoever uploads where too much is being read."""
    return _("Too many files are being read now. Try again in a moment.")


def too_large() -> str:
    """Returns why a file is not read."""
    return _("it is larger than {most} MB").format(most=LARGEST_FILE // 1024**2)


def is_upload(reference: FileReference) -> bool:
    """Whether a reference names what was uploaded before."""
    return UPLOAD in reference.source


def upload_of(reference: FileReference) -> str:
    """The id of what was uploaded."""
    return str(reference.source[UPLOAD])


def as_kept(references: Sequence[FileReference]) -> list[dict[str, Any]]:
    """References as the body of a message keeps them."""
    return [
        {
            "name": each.name,
            "media_type": each.media_type,
            "size": each.size,
            "source": dict(each.source),
            "refused": each.refused,
        }
        for each in references
    ]


def references_in(body: Mapping[str, Any]) -> tuple[FileReference, ...]:
    """The references in the body of a message."""
    return tuple(FileReference(**each) for each in body.get(FILES, ()))
