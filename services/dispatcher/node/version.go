package node

// Change is one that the code of a type went through, and that its runs must not
// notice: ctx.getVersion of the protocol, as data (OpenWOP host contract §7.4). The
// first node of a run that asks settles for Max; every later one, also in a replay,
// gets what was settled for in Input.Versions.
type Change struct {
	ID string
	// Min and Max are the versions that the code still has.
	Min, Max int
}
