// Package channel folds writes into the state of channels, and defines who may write what to them
// (OpenWOP host contract §5.9).
//
// The fold is pure and never fails. The state follows from the writes in the order of their
// sequence, each applied by the reducer that its event names. Age is computed from the events'
// timestamps, so that every fold of a log yields the same state.
package channel
