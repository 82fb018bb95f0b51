package node

// Change is a versioned change of a type's code that existing runs must not notice: ctx.getVersion
// of the protocol, as data (OpenWOP host contract §7.4). The first node of a run that needs it
// fixes the version at Max. Later nodes, also in a replay, get the fixed version in Input.Versions.
type Change struct {
	ID string
	// Min and Max are the versions that the code supports.
	Min, Max int
}
