// Package version names this build.
package version

// Version of Waybill; the release process sets it.
const Version = "0.1.0-dev"

// Name of the implementation, as discovery tells it.
const Name = "waybill"
