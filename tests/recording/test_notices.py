"""A user is told of a problem when it begins, once more when it comes back, and then no more."""

from hebbes.contracts.notices import Notices


def test_a_problem_is_told_when_it_begins_and_once_more_when_it_comes_back():
    notices = Notices()
    told = [notices.limit(problem, problem and f"{problem} now") for problem in ("a", "a", "", "a", "a", "", "a")]
    assert told == ["a now", "", "", "a now; this is not said again", "", "", ""]


def test_each_problem_counts_for_itself():
    notices = Notices()
    told = [notices.limit(problem, problem) for problem in ("a", "b", "a", "b", "a", "c")]
    assert told == ["a", "b", "a; this is not said again", "b; this is not said again", "", "c"]
