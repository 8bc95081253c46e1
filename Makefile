# make demo    trains a model on real data through aclnn operators
# make test    builds and runs every test
# Both make the environment .venv first and rebuild only what changed.

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip --disable-pip-version-check install --quiet

.PHONY: demo test test-deep properties build sanitize bench lint clean

demo: build
	$(RUN) examples/train_digits.py

test: build
	$(RUN) csrc/build.py --tests
	$(RUN) -m pytest tests

# Everything `make test` runs, every property on many more examples, and the C++ tests under the sanitizers.
test-deep: test properties sanitize

properties: build
	$(RUN) -m pytest tests -m hypothesis --hypothesis-profile=deep

# The C++ tests of the host CANN and the client under ASan + UBSan, then under TSan.
sanitize: build
	$(RUN) tests/sanitize.py

bench: build
	$(RUN) -m benchmarks.run

build: $(VENV)/installed
	@$(RUN) csrc/build.py

$(VENV)/installed: pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0 "setuptools>=77" ninja "pybind11>=3" numpy
	$(PIP) --no-build-isolation --editable ".[test]"
	@touch $@

lint: $(VENV)/linters
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	git ls-files -z 'csrc/*.cpp' 'csrc/*.h' 'tests/cpp/*' 'benchmarks/*.cpp' | grep -zE '\.(cpp|h)$$' | \
	  xargs -0 $(VENV)/bin/clang-format --dry-run --Werror

$(VENV)/linters: $(VENV)/installed
	$(PIP) --no-build-isolation --editable ".[lint]"
	@touch $@

clean:
	rm -rf build $(VENV) aclnn_torch/lib aclnn_torch/cann aclnn_torch/_C*.so
