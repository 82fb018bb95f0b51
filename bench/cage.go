package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cage is a memory cgroup, version 1 or 2. Each service of a host gets a child group, like a
// container: the kernel kills a service over the limit.
type cage struct {
	dir string
	// limit is the file with the limit, kills the file with the kill count.
	limit, kills string
}

// newCage creates a cage. It returns nil if the machine has no usable cgroup.
func newCage(name string) *cage {
	for _, c := range []cage{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
		{"/sys/fs/cgroup", "memory.max", "memory.events"},
	} {
		c.dir = filepath.Join(c.dir, name)
		if os.Mkdir(c.dir, 0o700) != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(c.dir, c.limit)); err == nil {
			// In version 1 the controllers are already enabled, and the file does not exist.
			_ = os.WriteFile(filepath.Join(c.dir, "cgroup.subtree_control"), []byte("+memory"), 0o600)
			return &c
		}
		_ = os.Remove(c.dir)
	}
	return nil
}

// wrap writes a script that starts the host's binary. Services get GOMEMLIMIT and the memory limit,
// in bytes; NATS gets neither.
func (c *cage) wrap(file, bin string, soft, limit int) error {
	within := ""
	if c != nil {
		within = fmt.Sprintf("d=%q/$2-$$; mkdir \"$d\"; echo %d > \"$d\"/%s; echo $$ > \"$d\"/cgroup.procs", c.dir, limit, c.limit)
	}
	script := fmt.Sprintf("#!/bin/sh\nset -e\ncase \"$*\" in\n*--help*) ;;\nserve*)\n\texport GOMEMLIMIT=%d\n\t%s\n\t;;\nesac\nexec %q \"$@\"\n", soft, within, bin)
	return os.WriteFile(file, []byte(script), 0o700) //nolint:gosec // G306: it is to be executed
}

// enclose writes a script that starts a binary in the cage, with a limit in bytes. Without a cage the
// limit is Go's.
func (c *cage) enclose(file, bin string, limit int) error {
	within := fmt.Sprintf("export GOMEMLIMIT=%d", limit/100*60)
	if c != nil {
		within = fmt.Sprintf("d=%q/$$; mkdir \"$d\"; echo %d > \"$d\"/%s; echo $$ > \"$d\"/cgroup.procs", c.dir, limit, c.limit)
	}
	script := fmt.Sprintf("#!/bin/sh\nset -e\n%s\nexec %q \"$@\"\n", within, bin)
	return os.WriteFile(file, []byte(script), 0o700) //nolint:gosec // G306: it is to be executed
}

// killed is the number of processes killed for their memory, -1 without a cage.
func (c *cage) killed() (n int, err error) {
	if c == nil {
		return -1, nil
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*", c.kills))
	for _, file := range files {
		b, errRead := os.ReadFile(file) //nolint:gosec // G304: the kernel's
		of, errParse := oomKills(string(b))
		n, err = n+of, errors.Join(err, errRead, errParse)
	}
	return n, err
}

// oomKills parses the kernel's count.
func oomKills(text string) (int, error) {
	for line := range strings.Lines(text) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			return strconv.Atoi(strings.TrimSpace(n))
		}
	}
	return 0, fmt.Errorf("no oom_kill in %q", text)
}

// remove removes the cage. Its processes must have ended.
func (c *cage) remove() error {
	if c == nil {
		return nil
	}
	each, err := filepath.Glob(filepath.Join(c.dir, "*", "cgroup.procs"))
	for _, file := range each {
		err = errors.Join(err, os.Remove(filepath.Dir(file)))
	}
	return errors.Join(err, os.Remove(c.dir))
}
