# The web console: TypeScript pages in console/web, built into console/dist, which the binary
# embeds. Node is needed to change the pages, not to build the binary.
CONSOLE := console/web
# Playwright uses the system's Chromium. The headless shell is preferred, because it needs a third less time.
CHROMIUM ?= $(shell command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome)
PLAYWRIGHT = cd $(CONSOLE) && CHROMIUM="$(CHROMIUM)" WAYBILL_BIN="$(CURDIR)/bin/waybill" npx playwright test

# API types from the OpenAPI document.
define console-types
go run ./tools/openapi > $(CONSOLE)/types/openapi.json
npm run -s --prefix $(CONSOLE) types
endef
CONSOLE_MODULES := $(CONSOLE)/node_modules/.package-lock.json $(CONSOLE)/types/node_modules/.package-lock.json

.PHONY: console
console: $(CONSOLE_MODULES) ## generate the console's API types, and build the console into console/dist; needs Node
	$(console-types)
	npm run -s --prefix $(CONSOLE) build

.PHONY: console-check
console-check: $(CONSOLE_MODULES) ## lint and test the console; fail if its types or console/dist are stale, or it exceeds its size limits
	mkdir -p .bin && cp $(CONSOLE)/src/api/schema.d.ts .bin/schema.d.ts
	$(console-types)
	diff .bin/schema.d.ts $(CONSOLE)/src/api/schema.d.ts && rm .bin/schema.d.ts
	npm run -s --prefix $(CONSOLE) lint
	npm run -s --prefix $(CONSOLE) test
	cd $(CONSOLE) && node scripts/fresh.mjs && node scripts/budget.mjs

# Timed tests run alone.
define browser.all
$(PLAYWRIGHT) --grep-invert '@slow|@timed'
$(PLAYWRIGHT) --grep @timed --workers 1
endef
browser.slow = $(PLAYWRIGHT) --grep @slow

.PHONY: browser
browser: build chromium $(CONSOLE)/node_modules/.package-lock.json ## test the console in a browser against a real host; ONLY=slow uses a hundred thousand runs
	$(call part,browser)

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
