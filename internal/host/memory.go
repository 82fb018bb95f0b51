package host

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// groupMemory returns the memory limit of the process's control group, or of one above it; 0 if
// there is none.
func groupMemory() int64 { return groupMemoryIn("/proc/self/cgroup", "/sys/fs/cgroup") }

// Files with the limit, in versions 2 and 1 of control groups. Version 1 writes a huge number for no
// limit.
const (
	limitFile    = "memory.max"
	limitFileOld = "memory/memory.limit_in_bytes"
	noLimit      = 1 << 60
)

func groupMemoryIn(self, root string) (limit int64) {
	b, err := os.ReadFile(self) //nolint:gosec // G304: a file of the kernel
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":") // ID:CONTROLLERS:PATH
		controllers, dir, ok := strings.Cut(rest, ":")
		dirOf, name := root, limitFile
		if slices.Contains(strings.Split(controllers, ","), "memory") {
			dirOf, name = path.Join(root, path.Dir(limitFileOld)), path.Base(limitFileOld)
		} else if !ok || controllers != "" {
			continue
		}
		for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
			if n := readLimit(path.Join(dirOf, dir, name)); n > 0 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}

func readLimit(file string) int64 {
	b, err := os.ReadFile(file) //nolint:gosec // G304: a file of the kernel
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}

// machineMemory returns the memory of the machine; 0 if it is unknown.
func machineMemory() int64 {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != "MemTotal:" {
			continue
		}
		if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
			return n << 10
		}
	}
	return 0
}

// groupPart is the part of the control group's memory that Go may use without GOMEMLIMIT, in
// percent. The rest is for the program itself, for the kernel's buffers and for the page cache.
const groupPart = 55

// limitMemory sets the limit of Go's memory from the control group, unless GOMEMLIMIT is set.
// Without it the garbage collector does not know how little memory there is.
func limitMemory() {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	if limit := groupMemory(); limit > 0 {
		debug.SetMemoryLimit(limit / 100 * groupPart)
	}
}
