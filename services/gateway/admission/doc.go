// Package admission sheds load before the gateway does any work for a request. Gate limits
// concurrent requests and starts of runs; StartLimiter limits the rate of starts by measured
// delay; RateLimiter limits the rate of events for each name. Starts are rejected first;
// answers to interrupts and cancellations last (OpenWOP host contract §2.0, capacity gate;
// §11.3, backpressure).
package admission
