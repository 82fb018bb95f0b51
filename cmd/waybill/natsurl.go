package main

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkNATS says what is wrong with the value of --nats: one URL, or several
// divided by commas. The URLs may hold passwords, and one that cannot be parsed
// may hold one anywhere, so that nothing of them is ever repeated: not even the
// parser's reason, which quotes the place.
func checkNATS(value string) error {
	urls := strings.Split(value, ",")
	for i, s := range urls {
		if natsURL(strings.TrimSpace(s)) {
			continue
		}
		which := "the URL"
		if len(urls) > 1 {
			which = fmt.Sprintf("URL no. %d", i+1)
		}
		return fmt.Errorf("--nats: %s cannot be used (it is not repeated here, as it may hold a password): want nats://HOST:PORT, such as nats://127.0.0.1:4222; "+
			"characters of a password that mean something in a URL are written as %%XX", which)
	}
	return nil
}

// natsURL reports whether the client can use a URL.
func natsURL(s string) bool {
	if !strings.Contains(s, "://") { // as the client reads it
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
		return false
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		return err == nil && n > 0
	}
	return true
}
