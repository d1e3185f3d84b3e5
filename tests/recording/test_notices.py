"""A user is told of a problem when it begins, once more when it comes back, and then no more."""

from hebbes.contracts.notices import Notice, Notices, make_failure_notices


def select(notices, problems):
    """What is told of problems, each a letter that has a line of its own."""
    return notices.select([Notice(f"{problem} now", [problem]) for problem in problems])


def test_a_problem_is_told_when_it_begins_and_once_more_when_it_comes_back():
    notices = Notices()
    told = [select(notices, problems) for problems in ("a", "a", "", "a", "a", "", "a")]
    assert told == [["a now"], [], [], ["a now; this is not said again"], [], [], []]


def test_each_problem_counts_for_itself():
    notices = Notices()
    told = [select(notices, problems) for problems in ("a", "ab", "b", "ab", "a", "ab", "c")]
    last = "; this is not said again"
    assert told == [["a now"], ["b now"], [], [f"a now{last}"], [], [f"b now{last}"], ["c now"]]


def test_a_line_on_several_problems_is_told_if_one_of_them_is_new():
    notices = Notices()
    mixed = [{"ValueError: 1": 2}, {"ValueError: 2": 1, "KeyError": 3}, {"KeyError": 1}, {"ValueError: 3": 1}, {}, {}]
    told = [notices.select(make_failure_notices("it", faults)) for faults in mixed]
    assert told == [
        ["it failed: ValueError: 1 in 2 episodes"],
        ["it failed: KeyError in 3 episodes, ValueError: 2 in 1 episode"],
        [],
        ["it failed: ValueError: 3 in 1 episode; this is not said again"],
        [],
        [],
    ]


def test_parties_have_problems_of_their_own():
    notices = Notices()
    told = [
        notices.select(make_failure_notices(f"{number} of 3", {"KeyError": 1}, parties))
        for number, parties in enumerate((["members"], ["members", "mean"], ["mean"]))
    ]
    assert told == [["0 of 3 failed: KeyError in 1 episode"], ["1 of 3 failed: KeyError in 1 episode"], []]
