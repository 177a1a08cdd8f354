"""Access entries by which a cluster admits the functions of the deployment, as `infra/access.py` and `infra/member.py`
create them."""

from collections.abc import Mapping
from dataclasses import dataclass

from leeward.doctor import expected
from leeward.doctor.facts import Served


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One access entry. `role`: ARN of the IAM role, empty where it is not known; `group`: the group that it has."""

    role: str
    group: str


def entries_of(served: Served | None) -> Mapping[str, Entry]:
    """Return the entries by name: of a cluster at home one for each ClusterRole of functions, elsewhere one for each
    function that signs in, named as its role there.
    """
    if served is not None and served.member_role:
        stem = served.member_role.rpartition("/")[2]
        return {
            f"{stem}-{function}": Entry(role=f"{served.member_role}-{function}", group=group)
            for function, group in expected.ENTERED_ELSEWHERE.items()
        }
    roles = served.roles if served is not None else {}
    return {
        name: Entry(role=roles.get(name, ""), group=expected.KUBERNETES_GROUPS[name][0]) for name in expected.ENTERED_AS
    }
