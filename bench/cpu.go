package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The machine may have other work. The kernel's CPU time of our code varies little with that,
// unlike wall time.

// threadCPU is the CPU time of the calling thread. The caller must have locked its goroutine to it.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU is the CPU time of all threads, including the garbage collector's.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // the kernel has both clocks
	}
	return time.Duration(ts.Nano())
}

// cost is the cost of one call.
type cost struct {
	cpu, wall time.Duration
	mallocs   uint64
	bytes     uint64
}

// costOf runs do on a locked thread and returns its cost. Nothing else may run in the process at
// the same time, because memory is counted per process.
func costOf(do func()) cost {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, cpu := time.Now(), threadCPU()
	do()
	c := cost{cpu: threadCPU() - cpu, wall: time.Since(began)}
	runtime.ReadMemStats(&after)
	c.mallocs, c.bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return c
}
