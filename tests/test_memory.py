"""The memory of results on CPU: kept and reused, without exposing another result's contents."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import aclnn_torch
from aclnn_torch import empty_cache, memory_stats, set_memory_limit
from tests import LONGEST
from tests.operators import ELEMENTWISE, OPERATORS, Kernel
from tests.operators._info import noise

ops = torch.ops.aclnn

KIB = 2**10
MIB = 2**20


@pytest.fixture(autouse=True)
def fresh_pool() -> Iterator[None]:
    """Every test begins with an unreachable limit and an empty pool."""
    gc.collect()
    gc.freeze()  # the next collection ignores survivors
    set_memory_limit(2**40)
    empty_cache()
    yield
    set_memory_limit(None)


def result(size: int) -> Tensor:
    """A result of this many bytes, all zeros."""
    return ops.elu(torch.zeros(size // 4))


def change(name: str, action: Callable[[], object]) -> int:
    before = memory_stats()[name]
    action()
    return memory_stats()[name] - before


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import torch, aclnn_torch\n{code}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONGEST,
    )


# ---- Keeping and releasing -----------------------------------------------------------------------


@pytest.mark.parametrize("size", [64 * KIB, 65 * KIB, MIB, 2 * MIB, 3 * MIB + 4, 20 * MIB])
def test_a_freed_result_is_memory_for_the_next_one(size: int) -> None:
    first = result(size)
    address = first.data_ptr()
    del first
    reserved = memory_stats()["reserved_bytes.current"]
    assert change("num_reuses", lambda: result(size)) == 1
    assert result(size).data_ptr() == address
    assert memory_stats()["reserved_bytes.current"] == reserved


def test_results_that_live_have_memory_of_their_own() -> None:
    results = [ops.elu(torch.full((MIB,), float(i))) for i in range(8)]
    assert len({one.data_ptr() for one in results}) == 8
    for i, one in enumerate(results):
        assert (one == i).all()


@pytest.mark.parametrize("size", [64 * KIB, 100 * KIB, MIB + 4, 5 * MIB])
def test_no_more_than_a_quarter_is_added_to_what_a_result_needs(size: int) -> None:
    kept = result(size)
    assert size <= memory_stats()["allocated_bytes.current"] <= size * 5 // 4
    del kept


def test_small_results_are_torchs_own_memory() -> None:
    assert change("allocations.allocated", lambda: result(64 * KIB - 4)) == 0


def test_figures() -> None:
    before = memory_stats()
    aclnn_torch.reset_peak_memory_stats()
    assert memory_stats()["allocated_bytes.peak"] == before["allocated_bytes.current"]
    one, two = result(MIB), result(2 * MIB)
    del one
    now = {name: value - before[name] for name, value in memory_stats().items()}
    assert (now["allocations.current"], now["allocations.allocated"], now["allocations.freed"]) == (1, 2, 1)
    assert now["allocated_bytes.current"] == 2 * MIB
    assert now["allocated_bytes.allocated"] == now["reserved_bytes.allocated"] == 3 * MIB
    assert now["allocated_bytes.freed"] == MIB
    assert now["reserved_bytes.current"] == 3 * MIB
    assert memory_stats()["allocated_bytes.peak"] == before["allocated_bytes.current"] + 3 * MIB
    del two
    empty_cache()
    assert memory_stats()["reserved_bytes.current"] == before["reserved_bytes.current"]
    assert memory_stats()["reserved_bytes.peak"] == before["reserved_bytes.current"] + 3 * MIB


def test_empty_cache_leaves_what_is_in_use() -> None:
    kept = result(MIB)
    result(2 * MIB)
    assert change("reserved_bytes.current", empty_cache) == -2 * MIB
    assert (kept == 0).all()
    assert change("num_reuses", lambda: result(2 * MIB)) == 0


def test_beyond_the_limit_what_was_used_longest_ago_goes() -> None:
    one, two, three = result(MIB), result(2 * MIB), result(4 * MIB)
    reserved = memory_stats()["reserved_bytes.current"]
    del two
    del one
    set_memory_limit(reserved - 1)
    assert memory_stats()["reserved_bytes.current"] == reserved - 2 * MIB
    assert change("num_reuses", lambda: result(MIB)) == 1
    set_memory_limit(1)
    assert memory_stats()["reserved_bytes.current"] == reserved - 3 * MIB
    assert (three == 0).all()
    del three
    assert memory_stats()["reserved_bytes.current"] == reserved - 7 * MIB


def test_a_new_block_makes_room_below_the_limit() -> None:
    result(4 * MIB)
    set_memory_limit(memory_stats()["reserved_bytes.current"] + MIB)
    assert change("reserved_bytes.current", lambda: result(2 * MIB)) == -2 * MIB


def test_results_are_not_limited() -> None:
    set_memory_limit(MIB)
    values = result(8 * MIB)
    assert (values == 0).all()
    del values
    assert change("num_reuses", lambda: result(8 * MIB)) == 0


def test_limit_zero_is_torchs_own_memory() -> None:
    kept = result(MIB)
    set_memory_limit(0)
    assert change("allocations.allocated", lambda: result(MIB)) == 0
    del kept
    assert memory_stats()["reserved_bytes.current"] == memory_stats()["allocated_bytes.current"]


@pytest.mark.parametrize("limit", [-1, "-1", "1.5G", "2 G", "2g", "G", "", "much"])
def test_a_limit_that_is_no_amount_is_refused(limit: int | str) -> None:
    before = memory_stats()["limit_bytes"]
    with pytest.raises(
        ValueError, match=rf"^set_memory_limit: bytes is {limit!r}, expected a number >= 0, a text such"
    ):
        set_memory_limit(limit)
    assert memory_stats()["limit_bytes"] == before


@pytest.mark.parametrize("limit", [1.5, [1], b"1G"])
def test_a_limit_of_another_kind_is_refused(limit: Any) -> None:
    with pytest.raises(TypeError, match=r"^set_memory_limit: bytes is .*, expected a number >= 0, a text such"):
        set_memory_limit(limit)


AMOUNTS = [("0", 0), ("4096", 4096), ("7K", 7168), ("512M", 512 * MIB), ("2G", 2048 * MIB), ("1T", 2**40)]


@pytest.mark.parametrize(("text", "limit"), AMOUNTS)
def test_limits_as_text(text: str, limit: int) -> None:
    set_memory_limit(text)
    assert memory_stats()["limit_bytes"] == limit


@pytest.mark.parametrize(("text", "limit"), AMOUNTS)
def test_environment_variable(text: str, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACLNN_TORCH_MEMORY_POOL", text)
    set_memory_limit(None)
    assert memory_stats()["limit_bytes"] == limit


def test_environment_variable_of_a_new_process() -> None:
    done = run_python('print(aclnn_torch.memory_stats()["limit_bytes"])', ACLNN_TORCH_MEMORY_POOL="7K")
    assert (done.stdout.strip(), done.stderr) == (str(7 * KIB), "")


def test_the_default_is_at_most_a_quarter_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACLNN_TORCH_MEMORY_POOL", raising=False)
    set_memory_limit(None)
    limit = memory_stats()["limit_bytes"]
    assert 0 < limit <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
    monkeypatch.setenv("ACLNN_TORCH_MEMORY_POOL", "much")
    with pytest.warns(UserWarning, match="ACLNN_TORCH_MEMORY_POOL=much is not a number of bytes") as caught:
        set_memory_limit(None)
    assert caught[0].filename == __file__
    assert memory_stats()["limit_bytes"] == limit


# ---- When memory is short ------------------------------------------------------------------------


def test_what_is_kept_goes_before_an_allocation_fails() -> None:
    code = """
import resource
aclnn_torch.set_memory_limit(2**40)
x = torch.zeros(2**26)
torch.ops.aclnn.elu(x)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, resource.RLIM_INFINITY))
y = torch.ops.aclnn.elu(x[: 2**25 + 2**24])
assert aclnn_torch.memory_stats()["num_alloc_retries"] == 1
try:
    torch.ops.aclnn.elu(x.expand(64, -1))
except RuntimeError as error:
    assert "allocate memory" in str(error), error
else:
    raise AssertionError("there is more memory than the limit")
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_large_kept_blocks_are_the_kernels_to_take() -> None:
    def lazily_freed() -> int:
        found = re.search(r"LazyFree: +(\d+) kB", Path("/proc/self/smaps_rollup").read_text())
        return int(found[1]) * KIB if found else -1

    before = lazily_freed()
    if before < 0:
        pytest.skip("this kernel does not count pages that it may take")
    values = result(64 * MIB)
    assert lazily_freed() - before < 32 * MIB
    del values
    assert lazily_freed() - before > 32 * MIB
    values = result(64 * MIB)
    assert lazily_freed() - before < 32 * MIB
    assert (values == 0).all()


# ---- Nothing of what was there before is seen ----------------------------------------------------


def poison(end: int) -> None:
    """Leaves nans in blocks of every size below the end that the pool has."""
    size, blocks = 64 * KIB, []
    while size < end:
        for quarter in range(4, 8):
            blocks += [result(size * quarter // 4).fill_(torch.nan) for _ in range(3)]
        size *= 2
    del blocks


def kernel_calls(kernel: Kernel) -> Iterator[tuple[str, Callable[[], Tensor]]]:
    """A kernel on tensors of several kinds; the gradient's is transposed or expanded."""
    if kernel.reads == 1:
        kinds: dict[str, Callable[[], tuple[Tensor, ...]]] = {
            "": lambda: (noise(200, 300),),
            ", BFLOAT16": lambda: (noise(200, 300, dtype=torch.bfloat16),),
            ", FLOAT16": lambda: (noise(200, 300, dtype=torch.float16),),
            ", strided": lambda: (noise(200, 600)[:, ::2],),
            ", expanded": lambda: (noise(300).expand(200, 300),),
        }
    else:
        kinds = {
            ", transposed": lambda: (noise(200, 300), noise(300, 200).t()),
            ", expanded": lambda: (noise(1).expand(200, 300), noise(200, 300)),
        }
    for name, tensors in kinds.items():
        yield f"{kernel.name}{name}", lambda tensors=tensors: kernel(*tensors())


ELEMENTWISE_CALLS: dict[str, Callable[[], object]] = {
    name: call
    for info in ELEMENTWISE.values()
    for kernel in info.kernels_for("tests")
    for name, call in kernel_calls(kernel)
}
CALLS = ELEMENTWISE_CALLS | {name: call for info in OPERATORS.values() for name, call in info.memory.items()}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("host_product")
def test_every_element_of_a_result_is_written(name: str) -> None:
    def run() -> list[Tensor]:
        torch.manual_seed(0)
        results = CALLS[name]()
        results = [results] if isinstance(results, Tensor) else results
        return [one for one in results if one is not None]

    set_memory_limit(0)
    expected = [one.clone() for one in run()]
    set_memory_limit(2**40)
    poison(MIB if name in ELEMENTWISE_CALLS else 8 * MIB)  # results, and workspaces
    before = memory_stats()["num_reuses"]
    results = run()
    assert memory_stats()["num_reuses"] > before
    torch.testing.assert_close(results, expected, equal_nan=True)


# ---- The gradient of cross entropy takes the log probabilities' memory ----------------------------

ROWS, CLASSES = 64, 4096  # a block of 1 MiB


def logits() -> tuple[Tensor, Tensor]:
    return noise(ROWS, CLASSES).requires_grad_(), torch.randint(CLASSES, (ROWS,))


def torchs_gradient(x: Tensor, target: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(torch.nn.functional.cross_entropy(x, target), x)
    return gradient


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_cross_entropy_needs_one_matrix(reduction: str) -> None:
    x, target = logits()
    target[::5] = -100
    aclnn_torch.reset_peak_memory_stats()
    before = memory_stats()["allocated_bytes.current"]
    aclnn_torch.functional.cross_entropy(x, target, reduction=reduction).sum().backward()
    assert memory_stats()["allocated_bytes.peak"] - before == MIB
    y = x.detach().clone().requires_grad_()
    torch.nn.functional.cross_entropy(y, target, reduction=reduction).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    x.grad.zero_()  # an ordinary gradient: it may be written, and accumulated into
    aclnn_torch.functional.cross_entropy(x, target, reduction=reduction).sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


HOLD: dict[str, Callable[[Tensor], object]] = {
    "tensor": lambda log_prob: log_prob,
    "view": lambda log_prob: log_prob[1:],
    "numpy": lambda log_prob: log_prob.detach().numpy(),
    "detached": lambda log_prob: log_prob.detach(),
}


@pytest.mark.parametrize("keep", HOLD)
def test_log_probabilities_that_are_held_stay(keep: str) -> None:
    x, target = logits()
    loss, log_prob, _, _ = ops.cross_entropy_loss(x, target)
    held = HOLD[keep](log_prob)
    del log_prob
    (gradient,) = torch.autograd.grad(loss.sum(), x)
    expected = torch.log_softmax(x.detach(), 1)[1 if keep == "view" else 0 :]
    torch.testing.assert_close(torch.as_tensor(held).detach(), expected)
    torch.testing.assert_close(gradient, torchs_gradient(x, target))


def test_a_graph_that_is_kept_can_be_run_again() -> None:
    x, target = logits()
    loss = aclnn_torch.functional.cross_entropy(x, target)
    expected = torchs_gradient(x, target)
    for retain in (True, True, False):
        (gradient,) = torch.autograd.grad(loss, x, retain_graph=retain)
        torch.testing.assert_close(gradient, expected)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(loss, x)


def test_a_gradient_that_is_differentiated_keeps_the_log_probabilities() -> None:
    x, target = logits()
    results = []
    for function in (aclnn_torch.functional.cross_entropy, torch.nn.functional.cross_entropy):
        (first,) = torch.autograd.grad(function(x, target), x, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), x)
        results += [first.detach(), second]
    torch.testing.assert_close(results[0], results[2])
    torch.testing.assert_close(results[1], results[3])


def test_saved_tensors_that_hooks_hold_stay() -> None:
    x, target = logits()
    packed: list[Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        loss = aclnn_torch.functional.cross_entropy(x, target)
    (gradient,) = torch.autograd.grad(loss, x)
    torch.testing.assert_close(gradient, torchs_gradient(x, target))
    expected = torch.log_softmax(x.detach(), 1)
    assert any(one.shape == expected.shape and torch.allclose(one.detach(), expected) for one in packed)


@pytest.mark.usefixtures("host_product")
def test_gradients_of_both_outputs() -> None:
    x = noise(ROWS, CLASSES, dtype=torch.float64).requires_grad_()
    target = torch.randint(CLASSES, (ROWS,))
    loss, log_prob, _, _ = ops.cross_entropy_loss(x, target)
    total = loss.sum() + log_prob.square().sum()
    del loss, log_prob
    (gradient,) = torch.autograd.grad(total, x)
    other = torch.nn.functional.cross_entropy(x, target) + torch.log_softmax(x, 1).square().sum()
    torch.testing.assert_close(gradient, torch.autograd.grad(other, x)[0])


# ---- Tensors like any other ----------------------------------------------------------------------


@pytest.fixture
def values() -> Tensor:
    return ops.elu(torch.arange(2.0**18))


def test_alignment(values: Tensor) -> None:
    assert values.data_ptr() % 64 == 0
    assert result(2 * MIB).data_ptr() % (2 * MIB) == 0


def test_resize(values: Tensor) -> None:
    values.resize_(2**20)
    assert values.untyped_storage().nbytes() == 4 * MIB
    assert (values[: 2**18] == torch.arange(2.0**18)).all()
    values.resize_(4)
    assert values.tolist() == [0, 1, 2, 3]


def test_storage_resize(values: Tensor) -> None:
    storage = values.untyped_storage()
    assert change("allocations.current", lambda: storage.resize_(0)) == -1
    storage.resize_(4 * MIB)
    values.fill_(3)
    assert (values == 3).all()


def test_set(values: Tensor) -> None:
    window = torch.empty(0).set_(values.untyped_storage(), 5, (2, 3), (7, 1))
    other = torch.zeros(3)
    assert change("allocations.current", lambda: values.set_(other)) == 0
    assert window.tolist() == [[5, 6, 7], [12, 13, 14]]
    assert change("allocations.current", lambda: window.set_(other)) == -1


def test_numpy_keeps_the_memory(values: Tensor) -> None:
    array = values.numpy()
    del values
    others = [result(MIB) for _ in range(3)]
    assert array[12345] == 12345
    del others


def test_dlpack_keeps_the_memory(values: Tensor) -> None:
    other = torch.from_dlpack(values)
    assert other.data_ptr() == values.data_ptr()
    del values
    result(MIB).fill_(7)
    assert other[12345] == 12345


def test_shared_memory(values: Tensor) -> None:
    values.share_memory_()
    assert values.is_shared()
    assert values[12345] == 12345


def test_copies(values: Tensor) -> None:
    file = io.BytesIO()
    torch.save(values, file)
    file.seek(0)
    copies = [torch.load(file), pickle.loads(pickle.dumps(values)), copy.deepcopy(values), torch._lazy_clone(values)]
    values.zero_()
    for one in copies:
        assert (one == torch.arange(2.0**18)).all()


def test_profiler(values: Tensor) -> None:
    x = torch.zeros(2**19)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        ops.elu(x)
    sizes = [event.self_cpu_memory_usage for event in profiled.events() if event.name == "aclnn::elu"]
    assert sizes == [2 * MIB]


# ---- Threads and processes -----------------------------------------------------------------------


def test_freed_by_another_thread() -> None:
    held = [result(MIB)]
    thread = threading.Thread(target=held.clear)
    assert change("allocations.current", lambda: (thread.start(), thread.join())) == -1
    assert change("num_reuses", lambda: result(MIB)) == 1


def test_threads() -> None:
    """Each thread has its own memory, whatever the others do."""
    wrong = []

    def work(number: int) -> None:
        x = torch.full((30000,), float(number + 1))
        held: list[Tensor] = []
        for turn in range(200):
            held.append(ops.elu(x[: 20000 + 37 * turn]))
            if len(held) > 5:
                one = held.pop(turn % 5)
                if not (one == number + 1).all():
                    wrong.append(turn)
            if turn % 50 == number:
                empty_cache()
            if turn % 70 == number:
                set_memory_limit(2**40 if turn % 2 else 300 * KIB)

    before = memory_stats()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    empty_cache()
    after = memory_stats()
    for name in ("allocations.current", "allocated_bytes.current", "reserved_bytes.current"):
        assert after[name] == before[name]


def test_fork_while_another_thread_allocates() -> None:
    code = """
import os, threading
torch.set_num_threads(1)
x = torch.arange(2.0**18)
held = torch.ops.aclnn.elu(x)
stop = threading.Event()

def work():
    while not stop.is_set():
        torch.ops.aclnn.elu(x)

thread = threading.Thread(target=work)
thread.start()
for turn in range(20):
    child = os.fork()
    if child == 0:
        ok = all(bool((torch.ops.aclnn.elu(x) == x).all()) for _ in range(3)) and bool((held == x).all())
        del held
        aclnn_torch.empty_cache()
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
thread.join()
assert bool((held == x).all())
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("first", [0, 1])
def test_lazy_clones(first: int) -> None:
    """Either may be freed first; the other keeps its numbers and is writable."""
    tensors = [result(MIB)]
    tensors.append(torch._lazy_clone(tensors[0]))
    del tensors[first]
    gc.collect()
    tensors[0].add_(1)
    assert bool((tensors[0] == 1).all())
    before = memory_stats()["allocations.current"]
    tensors.clear()
    assert memory_stats()["allocations.current"] == before - 1


def test_limits_of_control_groups(tmp_path: Path) -> None:
    """All parent groups of the process count, in both versions; other controllers do not."""
    groups = tmp_path / "cgroup"
    groups.write_text("3:cpu:/elsewhere\n2:memory:/a/b\n0::/c:d\n")
    root = Path("/sys/fs/cgroup")
    assert list(aclnn_torch.memory._limit_files(groups)) == [
        *(root / "memory" / name / "memory.limit_in_bytes" for name in ("a/b", "a", "")),
        *(root / name / "memory.max" for name in ("c:d", "")),
    ]
    assert list(aclnn_torch.memory._limit_files(tmp_path / "none")) == []


def test_freed_at_the_interpreters_end() -> None:
    code = """
import builtins, threading
builtins.kept = torch.ops.aclnn.elu(torch.zeros(2**20))
cycle = [torch.ops.aclnn.elu(torch.zeros(2**20))]
cycle.append(cycle)
threading.local().kept = torch.ops.aclnn.elu(torch.zeros(2**20))
"""
    done = run_python(code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
