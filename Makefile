# make demo      trains a model on real data through aclnn operators
# make demo-npu  the same under the real torch_npu on a simulated NPU, in an environment of its own, .venv-npu
# make test      builds and runs the tests for every change: the operator families in depth, of all else a part
# make test-all  runs the others, too, but for those that take long
# Each makes its environment first and rebuilds only what changed.

ifneq ($(shell test -w . && echo yes),yes)
$(error $(CURDIR) is not writable for $(shell id -un), and make builds in it; clone it to a folder of your own)
endif

PYTHON ?= python3
# An index with torch's builds for CPUs (1 GB instead of 5); tools/install_torch.py checks once if it is reachable.
export TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# Python caches bytecode, which hundreds of processes import; pip compiles none, because most is never imported.
unexport PYTHONDONTWRITEBYTECODE
# make TORCH=2.14.1 recreates the environments and builds for that version.
TORCH := 2.13.0
TORCH_NPU := $(basename $(TORCH)).*
VENV := .venv
NPU_VENV := .venv-npu
CLIENTS_VENV := .venv-clients
RUN := $(VENV)/bin/python
CMAKE := $(VENV)/bin/cmake
FUZZ := $(if $(filter x86_64,$(shell uname -m)),fuzz)  # atheris, which brings libFuzzer, exists for no other
CLANG ?= clang++
HAS_CLANG := $(shell echo 'int main() {}' | $(CLANG) -fopenmp -x c++ -include omp.h -fsyntax-only - 2> /dev/null && echo yes)
# A wheel of an older version is taken before one that would have to be compiled, as for a Python without the GIL.
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet --no-compile --prefer-binary
PIP := $(RUN) $(PIP_INSTALL)

# An environment is for one torch, one Python and one folder; otherwise it is recreated, and CMake's cache is cleared.
MADE_FOR := torch $(TORCH) in $(CURDIR)
remake = $(if $(wildcard $(1)/made_for),$(shell test "$$(cat $(1)/made_for)" = "$(MADE_FOR)" || echo remake))

# With -j, two builds would use one folder, and two pips one environment.
.NOTPARALLEL:

.PHONY: remake tidy tidy-rows demo demo-npu test test-all test-rest test-deep reliability properties clients commands soak stock build build-cost cann npu \
  sanitize mutants source-mutants fuzz clang test-aarch64 wheel-test wheels conformance bench bench-quick bench-check docs matrix lint clean

demo: build
	$(RUN) examples/train_digits.py

demo-npu: npu
	$(NPU_VENV)/bin/python -m aclnn_torch run examples/train_digits.py --device npu

# On a terminal, ninja shows its progress in one line.
QUIET := $$(test -t 2 || echo --quiet)
CPP_TESTS = $(CMAKE) --build build/release --target cpp_tests -- $(QUIET)
PYTEST := $(RUN) -m pytest tests --numprocesses=2 --dist=worksteal
test: npu
	$(CPP_TESTS)
	$(PYTEST) -m "not test_all and not deep"

# The tests that `make test` leaves out: all sessions of torch_npu, sweeps over all rows and headers, larger examples.
test-rest: npu
	$(CPP_TESTS)
	$(PYTEST) -m "test_all and not deep"

test-all:
	$(MAKE) test
	$(MAKE) test-rest

# All checks of docs/reliability.md except the mutants, about an hour on two cores: its tests, including slow ones,
# every property on many more examples, a million calls, clang-tidy on the files that `make lint` leaves out, the tests
# under the sanitizers, the fuzzer, libraries on simulated NPUs, and the C++ tests built by clang, if clang has its
# OpenMP.
test-deep: reliability properties soak tidy-rows sanitize $(FUZZ) clients $(if $(HAS_CLANG),clang)
	@test -n "$(HAS_CLANG)" || echo "clang: left out, $(CLANG) is not here or has no OpenMP"

RELIABILITY := reliability conformance test_aten_abuse.py test_binaries.py test_cpp.py test_determinism.py test_fuzz.py \
  test_memory.py test_numerics.py
reliability: cann
	$(CPP_TESTS)
	$(RUN) -m pytest $(addprefix tests/,$(RELIABILITY)) -m "deep or not deep" --numprocesses=2 --dist=worksteal

# Memory, file descriptors and threads over a million calls; docs/reliability.md.
soak: cann
	$(CPP_TESTS)
	ACLNN_TEST_SOAK=1 build/release/tests/test_soak
	ACLNN_TEST_SOAK=1 build/release/tests/test_soak_collectives
	ACLNN_TEST_SOAK=1 build/release/tests/test_soak_collectives_network
	ACLNN_TEST_SOAK=1 $(RUN) -m tests.reliability.soak

properties: cann
	$(RUN) -m pytest tests -m hypothesis --hypothesis-profile=deep --numprocesses=2 --dist=worksteal

# Programs of accelerate, Transformers, PEFT, TRL, Lightning, DeepSpeed, timm and torch on simulated NPUs, compared with
# the CPU; docs/npu.md. They have their own environment, .venv-clients, and do not use the network.
clients: cann $(CLIENTS_VENV)/installed
	HF_HUB_OFFLINE=1 $(CLIENTS_VENV)/bin/python -m aclnn_torch run --devices 2 --memory 2G \
	  -m pytest -p torch_npu -p no:cacheprovider --disable-warnings tests/clients

# The slow commands of the documents, which `make test` leaves out.
commands: npu
	$(CPP_TESTS)
	$(RUN) -m pytest tests/test_documents.py -m deep --numprocesses=2 --dist=worksteal

# Generated calls of the C interface under ASan + UBSan, ten minutes per operator, three operators at a time. ARGS are
# passed on.
fuzz: cann $(VENV)/libfuzzer
	$(CPP_TESTS)
	$(RUN) -m tests.fuzz $(ARGS)

$(VENV)/libfuzzer: $(VENV)/installed
	$(PIP) atheris
	@touch $@

# Tests source distribution and wheel in a fresh environment: see tests/wheel.py. Downloads torch.
wheel-test: $(VENV)/installed
	$(RUN) -m tests.wheel

# Wheels for every Python on PATH and, after test-aarch64, for aarch64, into dist; tests/wheels.py. ARGS=--release
# leaves no Python out.
wheels: build
	$(RUN) -m tests.wheels $(ARGS)

# The CPU seconds to compile the core, or with ARGS=--all everything. In a clean tree, this is the build.
build-cost: $(VENV)/tools
	$(RUN) tools/build_cost.py $(ARGS)

# Tests each supported version of torch, torch_npu and Python, and writes docs/compatibility.md. Downloads them.
matrix:
	$(PYTHON) tools/matrix.py $(ARGS)

# Runs README's commands as a new user would: in a clone of the committed tree, in a folder with a space, with an empty
# home, and with pip unconfigured except for the certificate and the network's proxy. Downloads torch, takes an hour and
# 8 GB.
KEPT := PIP_CERT SSL_CERT_FILE TORCH_INDEX http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY
stock:
	rm -rf "build/new user"
	git clone --quiet . "build/new user/aclnn_torch"
	mkdir "build/new user/home"
	cd "build/new user/aclnn_torch" && for target in demo test demo-npu; do \
	  begin=$$(date +%s); env -i HOME="$$PWD/../home" PATH="$$PATH" PIP_CONFIG_FILE=/dev/null CCACHE_DISABLE=1 \
	  $(foreach name,$(KEPT),$${$(name):+$(name)="$$$(name)"}) make $$target || exit 1; \
	  echo "make $$target took $$(($$(date +%s) - begin)) s"; done

# The C++ tests and the operators' Python tests under ASan + UBSan, then the C++ tests with threads under TSan.
sanitize: build
	$(RUN) -m tests.sanitize

# Changes the results of each function in nine ways, and each refusal in two, and reports the changes that no test
# detects; tests/mutants. All of it takes an hour; ARGS="aclnnIndex* --kinds sign" selects a part.
mutants: build
	$(RUN) -m tests.mutants $(ARGS)

# Changes one place of a source file at a time, of a sample, and reports the changes that the tests of these lines do
# not detect; tests/source_mutants. ARGS are python (if nothing is said) or cpp, a pattern of paths, and --sample; the
# whole sample takes hours.
source-mutants: cann $(VENV)/source_mutants
	$(RUN) -m tests.source_mutants $(ARGS)

$(VENV)/source_mutants: $(VENV)/installed
	$(PIP) cosmic-ray==8.7.0 coverage==7.17.5 universalmutator==1.14.1  # the sample depends on them
	@touch $@

# The C++ tests built by clang 16 or newer, with its OpenMP (libomp): make clang CLANG=clang++-16. Leaves out
# test_faults, whose injected failures also hit the start of libomp, which then hangs.
clang: build
	$(CMAKE) --fresh --preset clang -DCMAKE_CXX_COMPILER="$(CLANG)" -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(VENV)/bin/ninja" \
	  -DACLNN_PYTHON="$(CURDIR)/$(RUN)" > /dev/null
	$(CMAKE) --build build/clang --target all cpp_tests -- --quiet
	$(CMAKE) --install build/clang > /dev/null
	$(VENV)/bin/ctest --preset clang --exclude-regex test_faults

# The package on aarch64, built and tested on another machine with Debian's cross compiler and QEMU; tests/aarch64.py.
test-aarch64: build
	$(RUN) -m tests.aarch64

# Every condition of every operator on every product, and every function on ATen with every dtype: prints unexpected
# statuses, writes the computed dtypes to tests/aten_ops/dtypes.tsv, and updates the lists of operators and the counted
# numbers in pages.
conformance: cann
	$(RUN) -m tests.conformance.report
	$(RUN) -m tests.listings
	$(RUN) -m tests.aten_ops.report

# Speed compared with every peer; docs/benchmarks.md explains the method. ARGS are passed on.
bench: cann
	$(RUN) -m benchmarks.run $(ARGS)

bench-quick: cann
	$(RUN) -m benchmarks.run --quick $(ARGS)

# Exits with 1 if a performance bar is missed.
bench-check: cann
	$(RUN) -m benchmarks.run --check --threads 2 --threads 1 $(ARGS)

# The documents and the interface as a site, in build/docs/html.
docs: cann $(VENV)/documents
	$(RUN) -m docs.site.build

$(VENV)/documents: $(VENV)/installed
	$(PIP) --no-build-isolation --editable ".[docs]"
	@touch $@

# Builds the part for CPU tensors, and whatever else was built before.
build: $(VENV)/installed
	@$(BUILD)

# Also builds the prefix, laid out as an installed CANN, for C++ programs and torch_npu.
cann: $(VENV)/installed
	@$(BUILD) --cann

BUILD = $(RUN) setup.py --quiet build_ext --inplace

define make_environment
	test "$$(cat $(1)/made_for 2> /dev/null)" = "$(MADE_FOR)" && $(1)/bin/python -c "" || rm -rf $(1)
	test -f $(1)/made_for || $(PYTHON) -m venv $(1)
	echo "$(MADE_FOR)" > $(1)/made_for
endef

$(VENV)/tools: pyproject.toml $(call remake,$(VENV))
	test "$$(cat $(VENV)/made_for 2> /dev/null)" = "$(MADE_FOR)" || rm -f build/release/CMakeCache.txt
	$(call make_environment,$(VENV))
	$(RUN) tools/install_torch.py $(TORCH) "$(PYTHON)"
	$(PIP) "pip>=21.3" "setuptools>=77" "cmake>=3.24" "ninja!=1.13.*" "pybind11>=3" numpy
	@touch $@

$(VENV)/installed: $(VENV)/tools
	$(BUILD)
	$(PIP) --no-build-isolation --editable ".[test]"
	@touch $@

# A separate environment for torch_npu, because with it `import torch` needs a CANN. It uses the package from this tree,
# as built for the default environment, with the same torch, and also builds the part that needs torch_npu.
npu: cann $(NPU_VENV)/installed
	@$(CMAKE) build/release -DACLNN_TORCH_NPU="$(CURDIR)/$$(echo $(NPU_VENV)/lib/python*/site-packages/torch_npu)" > /dev/null
	@$(CMAKE) --build build/release -- $(QUIET)
	@$(CMAKE) --install build/release > /dev/null

# Makes an environment with torch_npu in the folder $(1), with the packages $(2). Setups such as DeepSpeed's import torch,
# which would load a torch_npu that is there already.
define make_npu_environment
	$(call make_environment,$(1))
	$(1)/bin/python tools/install_torch.py $(TORCH) "$(RUN)"
	TORCH_DEVICE_BACKEND_AUTOLOAD=0 $(1)/bin/python $(PIP_INSTALL) numpy pyyaml setuptools pytest hypothesis $(2)
	$(1)/bin/python $(PIP_INSTALL) --no-deps "torch_npu==$(TORCH_NPU)"
	echo "$(CURDIR)" > "$$($(1)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/aclnn_torch.pth"
	@touch $@
endef

NPU_PACKAGES := expecttest scikit-learn matplotlib rich protobuf "transformers>=5,<6"
$(NPU_VENV)/installed: Makefile $(call remake,$(NPU_VENV))
	$(call make_npu_environment,$(NPU_VENV),$(NPU_PACKAGES))

# timm needs torchvision, which must match torch; TORCH_INDEX has its builds for CPUs. Those have no Triton.
CLIENTS_PACKAGES := accelerate datasets deepspeed lightning peft timm torchvision triton==3.7.1 trl "transformers>=5,<6" "torch==$(TORCH)" \
  $(if $(TORCH_INDEX),--retries 0 --extra-index-url "$(TORCH_INDEX)")
$(CLIENTS_VENV)/installed: Makefile $(call remake,$(CLIENTS_VENV))
	$(call make_npu_environment,$(CLIENTS_VENV),$(CLIENTS_PACKAGES))

# Quick checks first.
lint: $(VENV)/linters
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	git ls-files -z 'csrc/*.cpp' 'csrc/*.h' 'tests/cpp/*' 'tests/programs/*' 'tests/reliability/*' 'tests/mutants/*' \
	  'tests/source_mutants/*.cpp' 'benchmarks/*' 'examples/*' | grep -zE '\.(cpp|h)$$' | xargs -0 $(VENV)/bin/clang-format --dry-run --Werror
	$(MAKE) tidy

# clang-tidy on code that is compiled once, several files at a time as in the build, what the last commit or the working
# tree changed first; the kernels use GCC's vector extensions. OpenMP's header is GCC's, too. The rows on ATen, most of
# the files, are left to test-deep.
ROWS := csrc/cann/(rows|named_ops)/
tidy: $(VENV)/linters
	$(call run_tidy,grep -vE 'csrc/(torch_npu|host_cann/kernels)/|$(ROWS)')

tidy-rows: $(VENV)/linters
	$(call run_tidy,grep -E '$(ROWS)')

define run_tidy
	$(CMAKE) -S . -B build/tidy -G Ninja -DCMAKE_MAKE_PROGRAM="$(CURDIR)/$(VENV)/bin/ninja" \
	  -DACLNN_PYTHON="$(CURDIR)/$(RUN)" -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON > /dev/null
	sed -nE 's#^ *"file": "$(CURDIR)/(csrc/.*|build/tidy/csrc/.*/Unity/.*)".*#\1#p' build/tidy/compile_commands.json | \
	  sort -u | $(1) > build/tidy/files
	git diff --name-only HEAD~1 -- csrc > build/tidy/changed 2> /dev/null || true
	{ grep -xFf build/tidy/changed build/tidy/files; \
	  grep -e /Unity/ build/tidy/files | tr '\n' '\0' | xargs -0r grep -lFf build/tidy/changed; \
	  cat build/tidy/files; } | awk '!seen[$$0]++' | tr '\n' '\0' | xargs -0 -P2 -n1 $(VENV)/bin/clang-tidy -p build/tidy --quiet \
	  --extra-arg=-idirafter --extra-arg="$$(g++ -print-file-name=include)"
endef

$(VENV)/linters: $(VENV)/installed
	$(PIP) --no-build-isolation --editable ".[lint]"
	@touch $@

clean:
	rm -rf build $(VENV) $(NPU_VENV) $(CLIENTS_VENV) aclnn_torch/lib aclnn_torch/cann aclnn_torch/*.so
