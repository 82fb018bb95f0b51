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

// Options are the addresses of the other services, with the TLS settings.
type Options struct {
	Redactor, Acceptor, Dispatcher, EventLog string
	// Via has the settings of all connections; its address is not used.
	Via Address
}

// Addr returns a pointer to the address of a service.
func (o *Options) Addr(service string) *string {
	return map[string]*string{
		Redactor: &o.Redactor, Acceptor: &o.Acceptor, Dispatcher: &o.Dispatcher, EventLog: &o.EventLog,
	}[service]
}

// Validate returns all errors, joined. services are the called services.
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

// to returns the address of a service with the settings of Via.
func (o *Options) to(service string) Address {
	a := o.Via
	a.Addr = *o.Addr(service)
	return a
}
