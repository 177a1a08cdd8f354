# Everything a person or a machine runs. `make help` lists it.
SHELL := /bin/bash
PY := .venv/bin/python
PIP := $(PY) -m pip install --disable-pip-version-check --progress-bar off
# Runs a command with its name, the time and its last line of output, so that no step is silent.
STEP := python3 supply_chain/progress.py
# One resolution for every Python from 3.11 on and every platform. The file says only how it is made: no index, no host.
LOCK := .venv/bin/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --annotation-style line --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
WORKERS ?= 4
# Commands that some tests need, each with Debian's package of it.
TOOLS := kubectl=kubernetes-client chromium=chromium zsh=zsh fish=fish
# of make simulate; empty: none. Weeks with the upgrades of an hour would be nothing but upgrades.
UPGRADES ?= $(if $(RECORD),,$(if $(WEEKS),0.02,4))
DISRUPTION ?= $(if $(RECORD),,1)
# The target's name is the event. It does not depend on setup: it only talks to a stack that runs.
PLAY = @test -x $(PY) || { echo "no environment here yet: run make local first, in another terminal"; exit 1; }; $(PY) -m local.interactive $@ $(if $(NODE),--node $(NODE)) $(if $(GROUP),--group $(GROUP)) $(if $(NO_FOLLOW),--no-follow)
# The cluster of make demo and make local, never that of the environment's KUBECONFIG.
FOREIGN = $(if $(CLUSTER_KUBECONFIG),--cluster-kubeconfig "$(CLUSTER_KUBECONFIG)" --confirm "$(CONFIRM)")
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 1
# Without bytecode every process compiles what it imports again: each worker of the tests, each process that they start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup tools lock demo demo-upgrade demo-consolidate local spot rebalance maintenance scale-in notifications pictures tutorial recordings test test-long lint types docs reference licences sbom audit check synth wheel package release deploy account-test simulate fuzz bench measure clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready  ## the virtual environment with everything pinned, Node.js and the CDK included, all of it below this folder

.venv/.ready: bootstrap.txt requirements.txt functions/requirements.txt functions/oldest-sdk.txt pyproject.toml package.json package-lock.json
	@command -v python3 >/dev/null || { echo "python3 (3.11 or newer) is needed"; exit 1; }
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "found $$(python3 --version), Python 3.11 or newer is needed"; exit 1; }
	@echo "setting up .venv and node_modules: a minute with cached downloads, else two to ten (output: build/setup.log)"
	@mkdir -p build && rm -rf build/setup.log build/oldest-sdk
	@test -x $(PY) || $(STEP) "1/7 virtual environment" -- python3 -m venv .venv
	@$(STEP) "2/7 pip" -- $(PIP) --require-hashes -r bootstrap.txt
	@$(STEP) "3/7 Python packages, and Node.js" -- $(PIP) --require-hashes -r requirements.txt
	@$(STEP) "4/7 leeward" -- $(PIP) --no-deps --no-build-isolation --editable .
	@$(STEP) "5/7 oldest supported AWS SDK" -- $(PIP) --require-hashes --no-deps --target build/oldest-sdk -r functions/oldest-sdk.txt
	@PATH="$(CURDIR)/.venv/bin:$$PATH" $(STEP) "6/7 CDK" -- .venv/bin/npm ci --no-fund --no-audit
	@$(STEP) "7/7 Lambda asset" -- $(PY) -c 'from pathlib import Path; from infra.asset import build_asset; build_asset(Path.cwd())'
	@for tool in $(TOOLS); do command -v $${tool%%=*} >/dev/null || echo "NOTE: no $${tool%%=*} here; the tests that need it will be reported as not run (make tools installs it)"; done
	@touch $@

tools:  ## kubectl, Chromium, zsh and fish, outside this folder (apt-get, as root), for the tests that need them; CI does this
	@missing=; for tool in $(TOOLS); do command -v $${tool%%=*} >/dev/null || missing="$$missing $${tool##*=}"; done; \
	if [ -z "$$missing" ]; then echo "all of them are here: $(foreach tool,$(TOOLS),$(firstword $(subst =, ,$(tool))))"; \
	elif ! command -v apt-get >/dev/null; then echo "no apt-get here: install$$missing as your system does"; exit 1; \
	elif [ "$$(id -u)" != 0 ]; then echo "this needs root: sudo apt-get install$$missing"; exit 1; \
	else $(STEP) "package lists" -- apt-get update && $(STEP) "$${missing# }" -- apt-get install -y --no-install-recommends $$missing; fi

lock: setup  ## the locks with hashes, from their *.in files: UPGRADE=1 takes newer transitive packages
	$(LOCK) bootstrap.in --output-file bootstrap.txt
	$(LOCK) --constraints bootstrap.txt requirements.in --output-file requirements.txt
	$(LOCK) --only-binary :all: functions/requirements.in --output-file functions/requirements.txt
	$(LOCK) --only-binary :all: functions/oldest-sdk.in --output-file functions/oldest-sdk.txt

demo: setup  ## the main job on the local stack: a spot warning, a scale-in, a maintenance, a duplicate, nonsense: CLUSTER_KUBECONFIG=FILE CONFIRM=CONTEXT: on an empty cluster of yours
	$(PY) -m local.demo $(FOREIGN)

demo-upgrade: setup  ## a group of twelve nodes rolled on the local stack, two budgets in its way: KILL_AT=SEED stops it once, SMALL=1: three nodes
	$(PY) -m local.demo_upgrade $(if $(SMALL),--small) $(if $(KILL_AT),--kill-at $(KILL_AT))

demo-consolidate: setup  ## drift, an empty node, three nodes for one cheaper, a pod that holds its node, on the local stack
	$(PY) -m local.demo_consolidate

local: setup  ## the local AWS and Kubernetes with Leeward and workloads, until Ctrl-C: STACK_ONLY=1: without these two, CLUSTER_KUBECONFIG=FILE CONFIRM=CONTEXT: on an empty cluster of yours
	@$(PY) -m local $(if $(STACK_ONLY),--stack-only) $(FOREIGN)

spot:  ## plays a spot warning on the running `make local` and follows its node: NODE=name or GROUP=name, NO_FOLLOW=1; the next three as well
	$(PLAY)

rebalance:  ## ... a rebalance recommendation
	$(PLAY)

maintenance:  ## ... the retirement of an instance, announced by AWS Health
	$(PLAY)

scale-in:  ## ... a scale-in: Auto Scaling terminates an instance, and wants one less
	$(PLAY)

notifications:  ## prints what Leeward has notified of on the running `make local`, each event once
	@$(PY) -m local.interactive.notifications

pictures: setup  ## docs/pictures: the tables of the demo, and reports, with Chromium, on a screen and on a phone
	$(PY) -m local.pictures

tutorial: setup  ## docs/getting-started-local.md with the outputs of a run on the local stack, four minutes
	GOLDEN_WRITE=1 $(PY) -m pytest --quiet tests/local/test_first_day.py

recordings: setup  ## docs/assets/top.svg and watch.svg: the real command line on a simulated cluster, in seconds
	$(PY) -m recordings

test: setup  ## all suites, in WORKERS=4 processes, for some mostly wait
	$(PY) -m pytest -m "not long" --numprocesses $(WORKERS)

test-long: setup  ## all suites with their long forms, and with new random inputs: SEED=N repeats those of a run, which printed its own
	@seed=$(or $(SEED),$$(date +%s)); echo "SEED=$$seed repeats the random inputs of this run"; \
	EXAMPLES=5000 SEEDS=200 $(PY) -m pytest --numprocesses $(WORKERS) --hypothesis-profile=new-inputs --hypothesis-seed=$$seed

lint: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: setup
	.venv/bin/mypy

docs: setup  ## the documentation as a site, build/site/index.html: offline, and a dead link or anchor fails it
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo build/site/index.html

reference: setup  ## docs/reference and docs/schema/README.md, from the parsers of the command line and the schemas
	@$(PY) -m documentation

licences: setup  ## supply_chain/licences.md: the licences of all locked packages
	$(PY) -m supply_chain.licences

sbom: setup  ## bills of materials (CycloneDX) of the asset and of the development environment: build/sbom/
	$(PY) -m supply_chain.bill_of_materials

audit: setup  ## published weaknesses of the locked packages; "not run" where no source answers
	@$(PY) -m supply_chain.advisories

check: lint types audit  ## lint, types and published weaknesses

synth: setup  ## the CloudFormation template, offline
	PATH="$(CURDIR)/.venv/bin:$$PATH" node_modules/.bin/cdk synth --quiet

wheel: setup  ## build/dist/leeward-VERSION-py3-none-any.whl, the command line without a clone, and the lock of its packages
	@$(PY) -m supply_chain.wheel

package: setup  ## build/package: CloudFormation template with parameters, Lambda asset, wheel and its lock, bill of materials, SHA256SUMS; docs/install.md
	@$(PY) -m supply_chain.package

release: setup  ## build/release: the package of a clean commit and an in-toto statement of its files; supply_chain/releasing.md
	@$(PY) -m supply_chain.release

deploy: setup  ## cdk bootstrap and cdk deploy with your AWS credentials and the settings in cdk.json: YES=1 asks nothing, for CI
	$(PY) -m infra.quota
	$(PY) -m supply_chain.bill_of_materials
	PATH="$(CURDIR)/.venv/bin:$$PATH" node_modules/.bin/cdk bootstrap
	PATH="$(CURDIR)/.venv/bin:$$PATH" node_modules/.bin/cdk deploy $(if $(YES),--require-approval never --progress events --ci)

account-test: setup  ## proves on your AWS account what emulators cannot, an hour, about $1, asks first and removes all: CLUSTER=name REGION= SUBNETS=a,b YES=1 ONLY="scale-in,IAM"; ONLY=deploy: minutes, no instance; SECURITY_GROUPS=a,b KMS_KEY=ARN WEBHOOK_SECRET=ARN MEMBER=ACCOUNT/ROLE: deployed with these too; REMOVE=RUN-ID after a kill; LOCAL=1: the local stack
	@$(PY) -m account_test $(if $(REMOVE),--remove $(REMOVE),$(if $(LOCAL),--local,$(if $(CLUSTER),--cluster $(CLUSTER)))) $(if $(REGION),--region $(REGION)) $(if $(SUBNETS),--subnets "$(SUBNETS)") $(if $(SECURITY_GROUPS),--security-groups "$(SECURITY_GROUPS)") $(if $(KMS_KEY),--kms-key "$(KMS_KEY)") $(if $(WEBHOOK_SECRET),--webhook-secret "$(WEBHOOK_SECRET)") $(if $(MEMBER),--member "$(MEMBER)") $(if $(ONLY),--only "$(ONLY)") $(if $(YES),--yes)

simulate: setup  ## random fleets, interruptions and faults in virtual time: SEEDS=50 FIRST_SEED=1 HOURS=1 WEEKS=4 FEATURES="two hooks of ours" PER_HOUR=30 UPGRADES=4 DISRUPTION=1 (empty: none), or RECORD=FILE.json NODES=8
	$(PY) -m simulation --seeds $(if $(RECORD),1,$(or $(SEEDS),50)) --first-seed $(or $(FIRST_SEED),1) --hours $(or $(HOURS),1) $(if $(WEEKS),--weeks $(WEEKS)) $(if $(FEATURES),--features "$(FEATURES)") $(if $(PER_HOUR),--per-hour $(PER_HOUR)) $(if $(UPGRADES),--upgrades $(UPGRADES)) $(if $(DISRUPTION),--disruption) $(if $(RECORD),--record $(RECORD)) $(if $(NODES),--nodes $(NODES)) $(if $(RESUME),--resume $(RESUME))

fuzz: setup  ## ten million inputs for everything that reads from outside, from where the last run has stopped: TARGET=quantities SEED=1 SHARE=1 (of each goal) SECONDS= (for each target) FIRST= INPUTS= (replays these numbers)
	$(PY) -m fuzz $(if $(TARGET),--target $(TARGET)) --seed $(or $(SEED),1) --share $(or $(SHARE),1) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(FIRST),--first $(FIRST)) $(if $(INPUTS),--inputs $(INPUTS))

bench: setup  ## the benchmarks, as ratios in one run
	$(PY) -m bench

measure: setup  ## how large the product's source is, how it is cut, how its docstrings read
	@$(PY) -m bench.measure

clean:  ## everything that can be made again
	rm -rf .venv node_modules cdk.out build .local .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info functions/*.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +
