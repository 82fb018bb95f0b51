// Package channel folds writes into the state of channels, and says who may write
// what to them (OpenWOP host contract §5.9).
//
// The fold is pure and never fails: state is what the writes, in the order of their
// sequence, make of it, each through the reducer that its event names. Age is told by
// the events' own times, so that every fold of a log agrees with every other.
package channel
