package engine

import "sync"

// goroutines run effects. One of them is kept for the next effect: its stack has already grown to
// the depth of a model call.
type goroutines struct {
	stopped <-chan struct{}
	running sync.WaitGroup
	// handoff passes an effect to the idle goroutine. idle is full while there is one.
	handoff chan func()
	idle    chan struct{}
}

// newGoroutines returns goroutines of which the idle one ends when stopped is closed.
func newGoroutines(stopped <-chan struct{}) *goroutines {
	return &goroutines{stopped: stopped, handoff: make(chan func()), idle: make(chan struct{}, 1)}
}

// run runs an effect on the idle goroutine, or on a new one.
func (g *goroutines) run(effect func()) {
	select {
	case g.handoff <- effect:
	default:
		g.running.Go(func() { g.runAll(effect) })
	}
}

// runAll runs effects one after the other. At most one goroutine waits for the next effect; the
// others end.
func (g *goroutines) runAll(effect func()) {
	for {
		effect()
		select {
		case g.idle <- struct{}{}:
		default:
			return
		}
		select {
		case effect = <-g.handoff:
			<-g.idle
		case <-g.stopped:
			return
		}
	}
}

// wait returns once all goroutines have ended.
func (g *goroutines) wait() { g.running.Wait() }
