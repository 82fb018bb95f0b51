// Package pack reads packs: folders by which a vendor hands a host envelope
// kinds and node types.
//
//	<pack>/pack.json              the manifest: the protocol's node pack manifest
//	<pack>/waybill.json           what that has no place for: envelope kinds, and of what
//	                              this host makes the pack's nodes; for this host alone
//	<pack>/schemas/note.json      what the manifest names by a path within the pack
//
// Load reads the packs of a host, all or none: it checks each manifest, keeps
// every path within its pack, bounds every file, and holds the packs against each
// other and against what the host can do (OpenWOP envelope contract §3.1, §4, §7,
// §16.5). What this host cannot execute is told, never passed over: a Note each.
package pack
