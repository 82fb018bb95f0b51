// Package pack reads packs: folders with envelope kinds and node types of a vendor.
//
//	<pack>/pack.json              the manifest: the protocol's node pack manifest
//	<pack>/waybill.json           additions for this host: envelope kinds, and the host
//	                              node types that implement the pack's nodes
//	<pack>/schemas/note.json      a file that the manifest refers to
//
// Load reads all packs of a host, or none. It checks each manifest, confines paths to the pack,
// limits file sizes, and checks the packs against each other and against the host's capabilities
// (OpenWOP envelope contract §3.1, §4, §7, §16.5). Everything this host cannot execute is reported
// as a Note.
package pack
