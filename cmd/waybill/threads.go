package main

import (
	"os"
	"runtime"
)

// spare is how many threads may run Go code beyond the CPUs there are, in a process
// that writes its own log.
const spare = 2

// makeRoom lets the log's writer go on at once when a sync of the disk returns,
// thousands of times a second: with a thread a CPU it waits for others to end their
// slice first. Measured with two CPUs, in turns: envelopes on disk 1 to 1.06 and up to
// 1.13, durable runs 1 to 1.11. Who sets GOMAXPROCS has the say.
func makeRoom() {
	if n, set := threads(os.Getenv("GOMAXPROCS"), runtime.GOMAXPROCS(0)); set {
		runtime.GOMAXPROCS(n)
	}
}

// threads is how many there should be; set is false when somebody else has decided.
func threads(env string, now int) (n int, set bool) {
	if env != "" {
		return now, false
	}
	return now + spare, true
}
