package hostfile

import (
	"errors"
	"os"
)

// WithoutPath removes the file name from an error, for messages that already have it.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
