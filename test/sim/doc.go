// Package sim runs the engine in a simulated world: real dispatchers and a real
// accept pipeline, with a clock, network, store, queue and models that follow
// from one seed.
//
// Every call that leaves a process is a boundary. It blocks until the world's
// scheduler serves it, one call at a time, after a latency drawn from the seed.
// The call succeeds, fails, loses its answer, runs twice or late, or its process
// is killed before or after it. The rest follows from that order, so a failing
// seed fails again.
//
//	Generate  -> Scenario: workflows, clients, faults        (scenario.go, flow.go)
//	World     -> the scheduler and the simulated boundaries  (world.go, port.go)
//	process   -> a dispatcher or an acceptor that can die    (process.go)
//	rules     -> the rules of every log, as tables           (rules.go, legal.go)
//	oracle    -> the expected outcome of a run               (oracle.go)
//	Story     -> given workflows and the actions on them     (story.go, scripted.go)
//	Limited   -> runs that wait for slots and limits         (limits.go)
//	Blow      -> the fate of one call, by its number         (blow.go)
//	Account   -> the content of a log without times          (account.go)
//	Shrink    -> a smaller scenario that still fails         (shrink.go)
package sim
