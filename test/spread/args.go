package main

import (
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// setting is a flag of `waybill dev` with its value.
type setting struct{ name, value string }

// own are the flags that the launcher handles itself.
type own struct {
	dataDir, httpAddr, grpcAddr, readyFile, durability, kinds string
	demoRuns                                                  string // not supported
}

// parse splits the arguments. Flags have the form that the tests use: a name, then its value, or a
// name alone.
func parse(args []string) (o own, rest []setting, err error) {
	o.durability = "sync"
	into := map[string]*string{
		"data-dir": &o.dataDir, "http-addr": &o.httpAddr, "grpc-addr": &o.grpcAddr, "ready-file": &o.readyFile, "durability": &o.durability, "kinds": &o.kinds,
		"demo-runs": &o.demoRuns,
	}
	for i := 0; i < len(args); i++ {
		name, ok := strings.CutPrefix(args[i], "--")
		if !ok {
			return o, nil, fmt.Errorf("argument %q: want a flag", args[i])
		}
		name, value, given := strings.Cut(name, "=")
		if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			i++
			value = args[i]
		} else if !given {
			value = "true"
		}
		if p := into[name]; p != nil {
			*p = value
			continue
		}
		rest = append(rest, setting{name, value})
	}
	if !slices.ContainsFunc(rest, func(s setting) bool { return s.name == "api-key" }) {
		rest = append(rest, setting{"api-key", "dev-key=default:*"}) // as in `waybill dev`
	}
	return o, rest, nil
}

var flagLine = regexp.MustCompile(`(?m)^\s+--([a-z0-9-]+)`)

// flagsOf returns the flags of a service.
func flagsOf(waybill, service string) (map[string]bool, error) {
	help, err := exec.Command(waybill, "serve", service, "--help").Output()
	if err != nil {
		return nil, fmt.Errorf("flags of %s: %w", service, err)
	}
	out := map[string]bool{}
	for _, m := range flagLine.FindAllSubmatch(help, -1) {
		out[string(m[1])] = true
	}
	return out, nil
}

// share assigns each setting to all services with that flag. A flag that no service has is an
// error.
func share(flags map[string]map[string]bool, settings []setting) (map[string][]string, error) {
	out := map[string][]string{}
	for _, s := range settings {
		used := false
		for service, has := range flags {
			if has[s.name] {
				used = true
				out[service] = append(out[service], "--"+s.name+"="+s.value)
			}
		}
		if !used {
			return nil, fmt.Errorf("--%s: no service has this flag", s.name)
		}
	}
	return out, nil
}
