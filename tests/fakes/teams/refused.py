"""How the fake says no."""

from __future__ import annotations

CODES = {
    412: "PreconditionFailed",
    429: "TooManyRequests",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}
"""What Teams calls a status that is not about the request."""
STATUSES = {
    "BadArgument": 400,
    "BadRequest": 400,
    "BadSyntax": 400,
    "Unauthorized": 401,
    "BotNotInConversationRoster": 403,
    "ContentStreamNotAllowed": 403,
    "ConversationBlockedByUser": 403,
    "ForbiddenOperationException": 403,
    "InvalidBotApiHost": 403,
    "MessageWritesBlocked": 403,
    "ActivityNotFoundInConversation": 404,
    "ConversationNotFound": 404,
    "MemberNotFoundInConversation": 404,
    "PreconditionFailed": 412,
    "MessageSizeTooBig": 413,
    "TooManyRequests": 429,
    "ServiceError": 500,
    "BadGateway": 502,
    "ServiceUnavailable": 503,
    "GatewayTimeout": 504,
}
"""Error codes of the Bot Connector with their HTTP statuses, as Teams documents them
(https://learn.microsoft.com/microsoftteams/platform/bots/build-conversational-capability, "Status codes")."""


class Refused(Exception):  # noqa: N818  # Teams refuses, nothing went wrong
    """`{"error": {"code": …, "message": …}}` with the status that belongs to the code."""

    def __init__(self, code: str, message: str, *, status: int = 0) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status or STATUSES[code]

    @property
    def body(self) -> dict[str, dict[str, str]]:
        """What is answered."""
        return {"error": {"code": self.code, "message": self.message}}
