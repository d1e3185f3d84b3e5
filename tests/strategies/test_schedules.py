import numpy as np
import pytest

from hebbes.strategies.core.schedules import SCHEDULES, FirstRankRule, Schedule, ScheduledSettings, ScheduleShape

NAN = float("nan")


def collect_values(schedule, shape, count):
    scheduled, found = Schedule(schedule, shape), []
    for _ in range(count):
        found.append(scheduled.value)
        scheduled.advance()
    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("constant", [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
        ("exponential", [1.0, 0.5, 0.25, 0.2, 0.2, 0.2]),
        ("asymptotic", [1.0, 0.6, 0.4, 0.3, 0.25, 0.225]),
        ("linear", [1.0, 0.8, 0.6, 0.4, 0.2, 0.2]),
        ("cosine", [1.0, 0.6 + 0.4 * 0.5**0.5, 0.6, 0.6 - 0.4 * 0.5**0.5, 0.2, 0.2]),
    ],
)
def test_schedules_by_hand(schedule, expected):
    assert collect_values(schedule, ScheduleShape(1.0, 0.2, 0.5, 4), 6) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_value_below_its_floor_stays_where_it_is(schedule):
    assert collect_values(schedule, ScheduleShape(0.1, 0.3, 0.5, 3), 5) == pytest.approx([0.1] * 5)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_goes_on_from_its_state(schedule):
    shape = ScheduleShape(1.0, 0.01, 0.9, 20)
    whole, first, second = collect_values(schedule, shape, 12), Schedule(schedule, shape), Schedule(schedule, shape)
    for _ in range(5):
        first.advance()
    second.load_state_dict(first.state_dict())
    found = []
    for _ in range(7):
        found.append(second.value)
        second.advance()
    assert found == whole[5:]


def collect_scales(rule, fitness):
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


def test_sigma_shrinks_when_the_mean_policy_keeps_ranking_first():
    rule = FirstRankRule(0.5, patience=2)
    assert collect_scales(rule, [FIRST, FIRST, FIRST, FIRST, FIRST]) == [1.0, 0.5, 0.5, 0.25, 0.25]


@pytest.mark.parametrize("between", [SECOND, SHARED, TIED, FAILED])
def test_any_other_generation_restarts_the_count(between):
    rule = FirstRankRule(0.5, patience=2)
    assert collect_scales(rule, [FIRST, between, FIRST, between]) == [1.0] * 4


def test_a_failed_member_ranks_below_the_mean_policy():
    assert collect_scales(FirstRankRule(0.5, patience=1), [[NAN, 2.0, 3.0]]) == [0.5]


def test_the_count_is_part_of_the_state():
    first, second = FirstRankRule(0.5, patience=3), FirstRankRule(0.5, patience=3)
    collect_scales(first, [FIRST] * 5)
    second.load_state_dict(first.state_dict())
    assert collect_scales(second, [FIRST]) == [0.25]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate_schedule": "linear"}, "schedule_generations must be given with learning_rate_schedule linear"),
        ({"sigma_schedule": "cosine"}, "schedule_generations must be given with sigma_schedule cosine"),
    ],
)
def test_refuses_what_it_cannot_use(settings, message):
    with pytest.raises(ValueError, match=message):
        ScheduledSettings(**settings)


def test_settings_make_both_schedules():
    settings = ScheduledSettings(
        learning_rate=0.4,
        learning_rate_schedule="linear",
        learning_rate_min=0.2,
        sigma=0.3,
        sigma_schedule="cosine",
        sigma_min=0.1,
        schedule_generations=2,
    )
    learning_rate, sigma = settings.make_learning_rate_schedule(), settings.make_sigma_schedule()
    learning_rate.advance()
    sigma.advance()
    assert (learning_rate.value, sigma.value) == pytest.approx((0.3, 0.2))
