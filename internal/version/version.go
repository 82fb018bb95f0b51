// Package version names this build.
package version

// Version of Waybill; the release process sets it.
const Version = "0.1.0-dev"

// Name is the name of the implementation in discovery.
const Name = "waybill"
