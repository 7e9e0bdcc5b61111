# The commands of this repository. `make` alone lists them.
#
# Rust is built by cargo and checked by `cargo xtask`; this file only ties them to the parts in
# other languages and to the system's packages.

SHELL := /bin/sh
.DEFAULT_GOAL := help

# Where cargo builds: the command, the program of the processes on hosts, and the shims beside the
# command that looks for them. The laboratory's programs are sapwood-* there, too.
TARGET    := $(or $(CARGO_TARGET_DIR),target)
PROGRAM   := $(TARGET)/release/sapwood
NODE      := $(TARGET)/release/sapwood-node
SHIMS     := $(abspath $(TARGET))/release/lib/sapwood

# Where `make install` puts everything, and where it is put together before.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
STAGE  := $(abspath $(TARGET))/stage

# What `make demo` runs. Its programs are built in minutes, without optimisation; those of a release are optimised
# whole: DEMO_BUILD=release.
DEMO_BUILD ?= demo
DEMO_PROGRAM = $(TARGET)/$(DEMO_BUILD)/sapwood
DEMO_NEEDS_demo    := quick-programs
DEMO_NEEDS_release := shim
DEMO_NEEDS = $(or $(DEMO_NEEDS_$(DEMO_BUILD)),$(error DEMO_BUILD is '$(DEMO_BUILD)', and not demo or release))
DEMO_OUT   ?= demo-out
DEMO_RANKS ?= 8
DEMO_STEPS ?= 1200
MPIRUN     ?= mpirun

# Of what runs test programs, such as `make test-mpi`, `make python-test` and `make page-test`: only the tests whose
# names have this in them; of `make page-test` a regular expression without blanks.
TESTS ?=

# Of `make test-mpi`: shared has the tests that bear other work beside them, alone those that need the machine
# (bindings/mpi/tests/turns.py). Without it both run.
TURN ?=
MPI_TESTS_        := check truth
MPI_TESTS_shared  := check truth-shared
MPI_TESTS_alone   := bypass-check truth-alone
MPI_TESTS = $(or $(MPI_TESTS_$(TURN)),$(error TURN is '$(TURN)', and not shared or alone))
# A program that has a test to run makes this file.
MPI_TESTS_CHOSEN := $(abspath $(TARGET))/mpi-tests-chosen

# How long the search for faults, the storm and the soak last, and what chance begins with.
MINUTES         ?= 30
HUNT_ARGUMENTS  ?=
STORM_SECONDS   ?= 600
STORM_SEED      ?= 1
STORM_ARGUMENTS ?=
SOAK_SECONDS    ?= 1800
SOAK_ARGUMENTS  ?=

# Eight ranks on a few cores: they must yield while they wait. Open MPI runs as root only if told
# twice that this is meant.
MPI_ENVIRONMENT := OMPI_MCA_mpi_yield_when_idle=1
ifeq ($(shell id -u),0)
MPI_ENVIRONMENT += OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
endif

# What a shell runs in the background ignores Ctrl-C, and so does all that it starts; tests press it.
INTERRUPTIBLE := env --default-signal=INT,QUIT

# What tests of the monitor run beside the command, of the build of the tests.
MONITOR_TEST_PROGRAMS := RANK_ROWS=$(abspath $(TARGET))/debug/examples/rank_rows \
    SAPWOOD_BENCH=$(abspath $(TARGET))/debug/sapwood-bench
BUILD_MONITOR_TEST_PROGRAMS := cargo build -p sapwood-monitor -p sapwood-bench -p sapwood-cli \
    -p sapwood-node-program --bins --example rank_rows

.PHONY: help
help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: requirements-demo $(DEMO_NEEDS) ## watch LAMMPS on 8 ranks, in a browser too; leaves a report in demo-out/
	mkdir -p $(dir $(DEMO_OUT))
	$(MPI_ENVIRONMENT) SAPWOOD_LIB_DIR=$(SHIMS) $(DEMO_PROGRAM) mpi --ranks-per-leaf 1 --fan-out 2 --interval 1s --page \
	    --out $(DEMO_OUT) -- \
	    $(MPIRUN) -np $(DEMO_RANKS) --oversubscribe \
	    lmp -in demo/in.melt -var steps $(DEMO_STEPS) -log none </dev/null

.PHONY: test
test: requirements-test ## everything that is tested, as the continuous integration runs it
	$(INTERRUPTIBLE) cargo xtask ci

.PHONY: check
check: ## the quick loop: format, layers, house style, lints, unit tests
	$(INTERRUPTIBLE) cargo xtask check

.PHONY: hunt
hunt: requirements-test ## search for faults that no test knows: MINUTES, HUNT_ARGUMENTS
	$(INTERRUPTIBLE) cargo xtask hunt --minutes $(MINUTES) $(HUNT_ARGUMENTS)

.PHONY: build
build: ## the release build: the programs and the C library
	cargo build --release -p sapwood-c -p sapwood-stacks
	cargo node-program
	cargo program

.PHONY: labs
labs: build instructions-program ## the laboratory's programs: benchmarks, simulator, storm and soak
	cargo bench-program
	cargo build --release -p sapwood-sim-program -p sapwood-storm

.PHONY: instructions-program
instructions-program: ## only what counts instructions of the release build, with the C library and the stack reader
	cargo build --release -p sapwood-c -p sapwood-stacks -p sapwood-instructions

.PHONY: shim
shim: build ## the MPI shims, one per MPI that is installed
	mkdir -p $(SHIMS)
	$(MAKE) -C bindings/mpi shims OUT=$(SHIMS)

# The MPI that LAMMPS is linked to: Debian has Open MPI, or MPICH on some machines.
DEMO_MPI = $(if $(findstring libmpich,$(shell ldd "$$(command -v lmp)" 2>/dev/null)),mpich,openmpi)
# What `make demo` runs, and the shim of that MPI, as in a release.
.PHONY: quick-programs
quick-programs:
	cargo build --profile demo -p sapwood-cli -p sapwood-node-program
	mkdir -p $(SHIMS)
	$(MAKE) -j2 -C bindings/mpi $(SHIMS)/libsapwood-mpi-$(DEMO_MPI).so OUT=$(SHIMS)

.PHONY: test-mpi
test-mpi: shim ## only the tests that run MPI programs: TURN
	[ -n "$$SAPWOOD_TESTS_BUILT" ] || $(BUILD_MONITOR_TEST_PROGRAMS)
	@rm -f $(MPI_TESTS_CHOSEN)
	@# Both build what they run in one folder, so that they are never made at once, whatever the number of jobs.
	@status=0; for goal in $(MPI_TESTS); do \
	    $(MPI_ENVIRONMENT) SAPWOOD=$(abspath $(PROGRAM)) SAPWOOD_MPI_TEST_OUT=$(SHIMS) \
	    SAPWOOD_MPI_TESTS_CHOSEN=$(MPI_TESTS_CHOSEN) $(MONITOR_TEST_PROGRAMS) \
	    $(MAKE) --keep-going -C bindings/mpi $$goal OUT=$(SHIMS) || status=$$?; done; exit $$status
	@[ -z '$(TESTS)' ] || [ -e $(MPI_TESTS_CHOSEN) ] || \
	    { echo "no test of this turn has $(TESTS) in its name" >&2; exit 1; }

.PHONY: torch-test
torch-test: requirements-torch shim ## only PyTorch programs below sapwood trace why, over gloo; two minutes
	[ -n "$$SAPWOOD_TESTS_BUILT" ] || $(BUILD_MONITOR_TEST_PROGRAMS)
	$(MPI_ENVIRONMENT) SAPWOOD=$(abspath $(PROGRAM)) SAPWOOD_LIB_DIR=$(SHIMS) \
	    $(MONITOR_TEST_PROGRAMS) \
	    python3 bindings/mpi/tests/torch_why.py $(TESTS:%=-k %)

.PHONY: pypi-test
pypi-test: PYPI = $(abspath target/pypi)
pypi-test: shim ## only sapwood mpi with PyPI's MPIs, and programs of the MPI standard's ABI; loads packages
	[ -n "$$SAPWOOD_TESTS_BUILT" ] || $(BUILD_MONITOR_TEST_PROGRAMS)
	bindings/mpi/tests/pypi/environments $(PYPI)
	$(MAKE) -C bindings/mpi all OUT=$(SHIMS) MPI_ABI_CC=$(PYPI)/abi/bin/mpicc_abi
	$(MPI_ENVIRONMENT) SAPWOOD=$(abspath $(PROGRAM)) SAPWOOD_LIB_DIR=$(SHIMS) SAPWOOD_PYPI=$(PYPI) \
	    $(MONITOR_TEST_PROGRAMS) \
	    python3 bindings/mpi/tests/pypi.py $(TESTS:%=-k %)
	MPI_ABI_CC=$(PYPI)/abi/bin/mpicc_abi python3 bindings/mpi/tests/run.py -k StandardAbi -k another_abi

.PHONY: c-test
c-test: ## only the C and C++ interfaces: sanitizers, valgrind, installed packages
	cargo test -p sapwood-c

.PHONY: library-test
library-test: build ## only loops in WebAssembly, in the C library and the program as they are released
	SAPWOOD_LIBRARIES=$(abspath $(TARGET))/release SAPWOOD_NODE=$(abspath $(NODE)) \
	    cargo test --workspace --test c_programs loops_in_webassembly

.PHONY: culprit-test
culprit-test: torch-test ## only `sapwood trace why`, asked of programs that hang or lag, PyTorch's too; seven minutes
	$(MPI_ENVIRONMENT) SAPWOOD=$(abspath $(PROGRAM)) \
	    $(MONITOR_TEST_PROGRAMS) \
	    $(MAKE) -C bindings/mpi tests/why.py.run tests/culprit_trials.py.run OUT=$(SHIMS)

.PHONY: compat-test
compat-test: build ## only MRNet's interface: its programs over all topologies
	$(MAKE) -C bindings/mrnet check

.PHONY: python-test
python-test: ## only the Python package: its wheel, installed below target/, and all its tests
	bindings/python/run-tests $(TESTS:%=-k %)

.PHONY: examples-test
examples-test: build python-environment ## only the tools of examples/, in four languages
	[ -n "$$SAPWOOD_TESTS_BUILT" ] || cargo build -p sapwood-examples --examples
	$(MAKE) -C bindings/mrnet
	SAPWOOD_NODE=$(abspath $(NODE)) $(MAKE) -C examples check PYTHON=$(abspath target/python/environment/bin/python)

.PHONY: page-test
page-test: requirements-test ## only the page of sapwood mpi, in Debian's Chromium, with real programs, too
	[ -n "$$SAPWOOD_TESTS_BUILT" ] || \
	    cargo build --workspace --bin sapwood --bin sapwood-node --example synthetic_page
	mkdir -p $(SHIMS) $(TARGET)/debug/lib
	$(MAKE) -C bindings/mpi shims OUT=$(SHIMS)
	rm -rf $(TARGET)/debug/lib/sapwood
	cp -r $(SHIMS) $(TARGET)/debug/lib/sapwood
	tools/web/page/run-tests $(TESTS:%=--test-name-pattern=%)

.PHONY: guide-test
guide-test: ## only the user's guide: builds it into target/guide/html
	docs/guide/run-tests

.PHONY: install
install: build shim ## programs, manual pages, completions, MPI shims, interfaces of C, C++ and MRNet: PREFIX, DESTDIR, LIBDIR
	rm -rf $(STAGE)
	$(MAKE) -C tools install BUILT=$(abspath $(TARGET))/release PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(STAGE)
	$(MAKE) -C bindings/mrnet install PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(STAGE)
	$(MAKE) -C bindings/mpi install OUT=$(SHIMS) PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(STAGE)
	packaging/place install $(STAGE) '$(DESTDIR)' $(PREFIX)
	@# The system's linker finds the new library by its cache, where this is a folder of its.
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ! command -v ldconfig >/dev/null || ldconfig

.PHONY: uninstall
uninstall: ## removes what `make install` has installed, and nothing else: PREFIX, DESTDIR
	packaging/place uninstall '$(DESTDIR)' $(PREFIX)

# Of `make package-test`: install, wheel, cargo, debian (packages in DEBIAN_PACKAGES).
ROADS ?= install wheel cargo

.PHONY: package-test
package-test: build shim $(if $(filter wheel,$(ROADS)),wheel) ## only installed trees, in an empty Debian 12, as root: ROADS
	packaging/test $(ROADS)

.PHONY: python-environment
python-environment:
	@[ -x target/python/environment/bin/sapwood ] || bindings/python/run-tests --collect-only -q >/dev/null

.PHONY: wheel
wheel: python-environment ## the Python wheel for other systems, checked by auditwheel: target/python/portable
	bindings/python/portable-wheel

.PHONY: bench
bench: labs ## round trip, pipelining and start-up beside their floor
	$(PROGRAM) bench tree --topology 4x4x4 --transport unix --bytes 64 --pin

.PHONY: instructions
instructions: labs ## instructions per message, compared with labs/instructions/counts.json
	$(TARGET)/release/sapwood-instructions --record labs/instructions/counts.json

.PHONY: storm
storm: labs ## networks under random faults, every answer checked: STORM_SECONDS, STORM_SEED
	testbed/storm $(TARGET)/release/sapwood-storm $(STORM_SECONDS) --seed $(STORM_SEED) $(STORM_ARGUMENTS)

.PHONY: testbed-test
testbed-test: build shim python-environment ## launchers on 64 hosts of the test bed, as root: TESTBED_STORIES
	$(MAKE) -C bindings/mrnet tests
	testbed/tests/run $(PROGRAM) $(TESTBED_STORIES)
ifeq ($(TESTBED_STORIES),)
	cargo build -q -p sapwood-cli -p sapwood-node-program
	TESTBED_HOSTS=8 testbed/tests/run $(TARGET)/debug/sapwood WrongClock
endif

.PHONY: exports-test
exports-test: build shim ## only what the readers of every format make of a watched program
	testbed/tests/exports $(PROGRAM)

.PHONY: scrape-test
scrape-test: build ## only what Debian's Prometheus makes of sapwood top
	testbed/tests/scrape $(PROGRAM)

.PHONY: soak
soak: labs ## a network at full rate, every process's memory watched: SOAK_SECONDS
	$(PROGRAM) soak --seconds $(SOAK_SECONDS) $(SOAK_ARGUMENTS)

.PHONY: clean-demo
clean-demo: ## remove the report of the demo
	rm -rf demo-out

.PHONY: requirements-demo
requirements-demo:
	@testbed/requirements demo

.PHONY: requirements-torch
requirements-torch:
	@testbed/requirements torch

.PHONY: requirements-test
requirements-test:
	@testbed/requirements test
