package peer

import (
	"errors"
	"fmt"
)

// The names of the services, as flags and in messages.
const (
	Redactor   = "redactor"
	Acceptor   = "acceptor"
	Dispatcher = "dispatcher"
	EventLog   = "eventlog"
)

// Options say where the other services of a host are, and how they are reached.
type Options struct {
	Redactor, Acceptor, Dispatcher, EventLog string
	// Via is how all of them are reached; its address is not used.
	Via Address
}

// Addr returns where the address of a service is kept.
func (o *Options) Addr(service string) *string {
	return map[string]*string{
		Redactor: &o.Redactor, Acceptor: &o.Acceptor, Dispatcher: &o.Dispatcher, EventLog: &o.EventLog,
	}[service]
}

// Validate returns all that is wrong, joined; services are those that are called.
func (o *Options) Validate(services ...string) error {
	var errs []error
	for _, name := range services {
		if *o.Addr(name) == "" {
			errs = append(errs, fmt.Errorf("--%s: give the HOST:PORT of the %s service", name, name))
			continue
		}
		if err := o.to(name).check(); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// to is how a service is reached.
func (o *Options) to(service string) Address {
	a := o.Via
	a.Addr = *o.Addr(service)
	return a
}
