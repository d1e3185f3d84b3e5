"""Free memory is read from files as Linux writes them, because a test cannot set the machine's own limits."""

import pytest

from hebbes.training.free_memory import measure_free_memory, measure_private_memory

MEMINFO = "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"


def write_machine(root, files):
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def make_group_files(folder, limit, used, inactive, *, version):
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    stat = f"cache 5\n{names[2]} {inactive}\nother 7\n"
    return {f"{folder}/{names[0]}": f"{limit}\n", f"{folder}/{names[1]}": f"{used}\n", f"{folder}/memory.stat": stat}


def test_without_a_control_group_it_is_what_the_machine_has(tmp_path):
    assert measure_free_memory(write_machine(tmp_path, {})) == 8_000_000 * 1024


@pytest.mark.parametrize(
    ("version", "line", "folder"),
    [(2, "0::/job/step", "sys/fs/cgroup/job/step"), (1, "7:cpu,memory:/job/step", "sys/fs/cgroup/memory/job/step")],
)
def test_a_group_has_its_limit_less_what_is_used_and_cannot_be_dropped(version, line, folder, tmp_path):
    files = {"proc/self/cgroup": f"9:pids:/else\n{line}\n", **make_group_files(folder, 1000, 700, 150, version=version)}
    assert measure_free_memory(write_machine(tmp_path, files)) == 450


@pytest.mark.parametrize(("version", "line"), [(2, "0::/outer/inner"), (1, "4:memory:/outer/inner")])
def test_the_least_of_nested_groups_counts(version, line, tmp_path):
    top = "sys/fs/cgroup/" if version == 2 else "sys/fs/cgroup/memory/"
    files = {
        "proc/self/cgroup": f"{line}\n",
        **make_group_files(f"{top}outer/inner", 5000, 100, 0, version=version),
        **make_group_files(f"{top}outer", 900, 100, 0, version=version),
    }
    assert measure_free_memory(write_machine(tmp_path, files)) == 800


def test_a_path_that_only_the_host_knows_leads_to_the_containers_own_group(tmp_path):
    files = {"proc/self/cgroup": "0::/docker/abc\n", **make_group_files("sys/fs/cgroup", 3000, 1000, 0, version=2)}
    assert measure_free_memory(write_machine(tmp_path, files)) == 2000


@pytest.mark.parametrize(("version", "none"), [(2, "max"), (1, 9223372036854771712)])
def test_a_group_without_a_limit_leaves_all(version, none, tmp_path):
    folder, line = ("sys/fs/cgroup", "0::/") if version == 2 else ("sys/fs/cgroup/memory", "3:memory:/")
    files = {"proc/self/cgroup": f"{line}\n", **make_group_files(folder, none, 5, 0, version=version)}
    assert measure_free_memory(write_machine(tmp_path, files)) == 8_000_000 * 1024


def test_a_group_that_uses_more_than_its_limit_has_none_left(tmp_path):
    files = {"proc/self/cgroup": "0::/a\n", **make_group_files("sys/fs/cgroup/a", 100, 130, 0, version=2)}
    assert measure_free_memory(write_machine(tmp_path, files)) == 0


def test_a_system_that_says_nothing_is_not_guessed_at(tmp_path):
    assert measure_free_memory(tmp_path) is None


def test_this_machine_has_some_and_this_process_takes_some():
    assert measure_free_memory() > 10_000_000
    assert measure_private_memory() > 10_000_000
