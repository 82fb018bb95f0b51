// Package admission decides what the gateway takes before it does anything for it, by what
// is asked: starts of runs are refused first, answers to what runs ask and the ends of runs last
// (OpenWOP host contract §2.0, capacity gate; §11.3, backpressure).
package admission
