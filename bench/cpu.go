package main

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// The machine may have other work. What a core spends on our code is counted by
// the kernel, and differs little with that: the time on the wall does.

// threadCPU is what the calling thread has spent so far. The caller has locked its
// goroutine to it.
func threadCPU() time.Duration { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }

// processCPU is what all threads have spent so far, the garbage collector's too.
func processCPU() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // the kernel has both clocks
	}
	return time.Duration(ts.Nano())
}

// cost is what one call took.
type cost struct {
	cpu, wall time.Duration
	mallocs   uint64
	bytes     uint64
}

// costOf runs do on a thread of its own and takes its cost. Nothing else may run
// in the process meanwhile: memory is counted for all of it.
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
