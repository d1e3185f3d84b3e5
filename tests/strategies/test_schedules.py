import numpy as np
import pytest

from hebbes.strategies.core.schedules import SCHEDULES, Course, FirstRankRule, Rate, RateSettings

NAN = float("nan")


def values(schedule, course, count):
    rate, found = Rate(schedule, course), []
    for _ in range(count):
        found.append(rate.value)
        rate.advance()
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("exponential", [1.0, 0.5, 0.25, 0.2, 0.2, 0.2]),
        ("linear", [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]),
        ("cosine", [1.0, 0.6 + 0.4 * 0.5**0.5, 0.6, 0.6 - 0.4 * 0.5**0.5, 0.2, 0.2]),
    ],
)
def test_courses_by_hand(schedule, expected):
    assert values(schedule, Course(1.0, 0.2, 0.5, 4), 6) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_rate_below_its_floor_stays_where_it_is(schedule):
    assert values(schedule, Course(0.1, 0.3, 0.5, 3), 5) == pytest.approx([0.1] * 5)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_goes_on_from_its_state(schedule):
    course = Course(1.0, 0.01, 0.9, 20)
    whole, first, second = values(schedule, course, 12), Rate(schedule, course), Rate(schedule, course)
    for _ in range(5):
        first.advance()
    second.load_state_dict(first.state_dict())
    found = []
    for _ in range(7):
        found.append(second.value)
        second.advance()
    assert found == whole[5:]


def scales(rule, fitness):
    found = []
    for each in fitness:
        rule.observe(np.array(each))
        found.append(rule.scale)
    return found


FIRST, SECOND, TIED, SHARED, FAILED = (
    [1.0, 2.0, 3.0],
    [1.0, 4.0, 3.0],
    [3.0, 3.0, 3.0],
    [1.0, 3.0, 3.0],
    [1.0, 2.0, NAN],
)


def test_sigma_shrinks_when_the_unperturbed_policy_keeps_ranking_first():
    rule = FirstRankRule(0.5, patience=2)
    assert scales(rule, [FIRST, FIRST, FIRST, FIRST, FIRST]) == [1.0, 0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize("between", [SECOND, SHARED, TIED, FAILED])
def test_any_other_generation_begins_the_count_anew(between):
    rule = FirstRankRule(0.5, patience=2)
    assert scales(rule, [FIRST, between, FIRST, between]) == [1.0] * 4


def test_a_failed_member_is_one_that_was_beaten():
    assert scales(FirstRankRule(0.5, patience=1), [[NAN, 2.0, 3.0]]) == [0.5]


def test_the_count_is_part_of_the_state():
    first, second = FirstRankRule(0.5, patience=3), FirstRankRule(0.5, patience=3)
    scales(first, [FIRST] * 5)
    second.load_state_dict(first.state_dict())
    assert scales(second, [FIRST]) == [0.25]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lr_schedule": "linear"}, "schedule_generations must be given with lr_schedule linear"),
        ({"sigma_schedule": "cosine"}, "schedule_generations must be given with sigma_schedule cosine"),
        ({"schedule_generations": 0}, "schedule_generations must be >= 1, got 0"),
        ({"sigma_min": -0.1}, "sigma_min must be a finite number >= 0, got -0.1"),
        ({"lr": float("nan")}, "lr must be a finite number > 0, got nan"),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        RateSettings(**settings)


def test_settings_make_both_rates():
    settings = RateSettings(
        lr=0.4,
        lr_schedule="linear",
        lr_min=0.2,
        sigma=0.3,
        sigma_schedule="cosine",
        sigma_min=0.1,
        schedule_generations=2,
    )
    lr, sigma = settings.lr_rate(), settings.sigma_rate()
    lr.advance()
    sigma.advance()
    assert (lr.value, sigma.value) == pytest.approx((0.3, 0.2))
