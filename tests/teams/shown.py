"""What the tests of rendering in Teams show: posts, and one plain view of each kind."""

from __future__ import annotations

from functools import partial

from adapters.teams.ids import TeamsLocation, place_of
from bot.domain import Content, Post
from tests.support import views
from tests.support.views import NOW

TENANT = "aaaaaaaa-0000-4000-8000-000000000001"
ANA_ID = f"teams:{TENANT}:aaaaaaaa-0000-4000-8000-00000000000a"
THREAD = TeamsLocation(
    TENANT, "19:channel@thread.tacv2;messageid=1700000000000", "channel", "https://smba.example/teams/"
)
PLACE = place_of(THREAD)


def a_post(content: Content, post_id: str = "said:m1") -> Post:
    """A post in the thread."""
    return Post(post_id, PLACE.key, PLACE, 1, NOW, content)


an_approval = partial(views.an_approval, requester_ids=(ANA_ID,), rule="writes need the requester")
a_question = partial(views.a_question, requester_id=ANA_ID)
a_sign_in = partial(views.a_sign_in, owner_id=ANA_ID)
an_account = views.an_account
a_change = partial(views.a_change, requester_id=ANA_ID)
a_plan = partial(views.a_plan, requester_id=ANA_ID)
an_outcome = partial(views.an_outcome, requester_id=ANA_ID)
