# The web console: pages of TypeScript in console/web, built into console/dist, which the
# binary embeds. Node is needed to change them, not to build the binary.
CONSOLE := console/web
# Playwright drives the system's Chromium: where it is installed, that without windows, which takes two thirds of the time.
CHROMIUM ?= $(shell command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome)
PLAYWRIGHT = cd $(CONSOLE) && CHROMIUM="$(CHROMIUM)" WAYBILL_BIN="$(CURDIR)/bin/waybill" npx playwright test

.PHONY: console
console: $(CONSOLE)/node_modules/.package-lock.json ## build the web console into console/dist; needs Node
	npm run -s --prefix $(CONSOLE) build

.PHONY: console-types
console-types: $(CONSOLE)/types/node_modules/.package-lock.json ## write the console's types of the API anew
	go run ./tools/openapi > $(CONSOLE)/types/openapi.json
	npm run -s --prefix $(CONSOLE) types

.PHONY: console-check
console-check: $(CONSOLE)/node_modules/.package-lock.json $(CONSOLE)/types/node_modules/.package-lock.json ## lint and test the console; fail if its types or console/dist are stale, or it is too heavy
	mkdir -p .bin && cp $(CONSOLE)/src/api/schema.d.ts .bin/schema.d.ts
	$(MAKE) console-types
	diff .bin/schema.d.ts $(CONSOLE)/src/api/schema.d.ts && rm .bin/schema.d.ts
	npm run -s --prefix $(CONSOLE) lint
	npm run -s --prefix $(CONSOLE) test
	cd $(CONSOLE) && node scripts/fresh.mjs && node scripts/budget.mjs

.PHONY: browser
browser: build chromium $(CONSOLE)/node_modules/.package-lock.json ## drive the console in a browser, against a real host
	$(PLAYWRIGHT) --grep-invert '@slow|@timed'
	$(PLAYWRIGHT) --grep @timed --workers 1 # what is held to a time by the clock has the machine to itself

.PHONY: browser-slow
browser-slow: build chromium $(CONSOLE)/node_modules/.package-lock.json ## the same where it takes long: a hundred thousand runs
	$(PLAYWRIGHT) --grep @slow

.PHONY: chromium
chromium:
ifeq ($(CHROMIUM),)
	@test "$$(id -u)" = 0 || { echo "there is no Chromium: install it, or name one in CHROMIUM" >&2; exit 1; }
	apt-get update -q && apt-get install -qy --no-install-recommends chromium-headless-shell fonts-liberation
endif

$(CONSOLE)/node_modules/.package-lock.json: $(CONSOLE)/package-lock.json
	npm ci --no-audit --no-fund --prefix $(CONSOLE)
	touch $@

$(CONSOLE)/types/node_modules/.package-lock.json: $(CONSOLE)/types/package-lock.json
	npm ci --no-audit --no-fund --prefix $(CONSOLE)/types
	touch $@
