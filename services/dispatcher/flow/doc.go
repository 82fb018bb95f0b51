// Package flow is what a definition says about where a run goes and what it carries
// there, compiled: the conditions of its edges and the expressions of its ports
// (OpenWOP host contract §5.2, §5.3). It is made once for a definition and serves
// all its runs.
//
// Everything here follows from the values it is given, so that a run comes to the
// same wherever and however often it is carried on.
package flow
