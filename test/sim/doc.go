// Package sim runs the engine in a simulated world: real dispatchers and a real
// accept pipeline, with a clock, network, store, queue and models that follow
// from one seed.
//
// Every call that leaves a process is a boundary. It blocks, and is served by
// the world's scheduler, one at a time, after a latency that the seed decides: as
// it is, not at all, with its answer lost, twice, late, or with its process
// killed before or after. Everything else follows from that order, so that a
// seed that fails fails again.
//
//	Generate  -> Scenario: workflows, clients, faults        (scenario.go, flow.go)
//	World     -> the scheduler and the simulated boundaries  (world.go, port.go)
//	process   -> a dispatcher or an acceptor that can die    (process.go)
//	rules     -> what must hold of every log, as tables      (rules.go, legal.go)
//	oracle    -> what a run must come to                     (oracle.go)
//	Story     -> given workflows and what is done to them    (story.go, scripted.go)
//	Limited   -> runs that wait for slots and limits         (limits.go)
//	Blow      -> what becomes of one call, by its number     (blow.go)
//	Account   -> what a log says but for time                (account.go)
//	Shrink    -> a smaller scenario that still fails         (shrink.go)
package sim
