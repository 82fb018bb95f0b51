package main

import (
	"strings"
	"time"

	"waybill.dev/waybill/services/gateway/session"
)

// consolePath is where the console is below the REST API.
const consolePath = "/console/"

// stalledAfter is after how long without news a run counts as stalled: longer than models
// take to begin an answer.
const stalledAfter = 5 * time.Minute

// consoleConfig describes the console.
func (h *host) consoleConfig() *session.Config {
	mode := session.Dev
	if h.nats == nil { // the log is elsewhere: a part of a host that is spread
		mode = session.Production
	}
	return &session.Config{Mode: mode, HTTPS: strings.HasPrefix(h.baseURL(), "https://"), StalledAfter: stalledAfter}
}

// consoleLink is the console's address with a code that signs in once. Only who reads
// this terminal may use it, so a host that others reach gives none.
func (h *host) consoleLink(r readyInfo) string {
	if r.Console == "" || !onLoopback(h.opts.httpAddr) {
		return r.Console
	}
	return r.Console + "#code=" + h.gateway.MintCode(firstKey(h.opts.apiKeys))
}
