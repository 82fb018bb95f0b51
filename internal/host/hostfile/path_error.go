package hostfile

import (
	"errors"
	"os"
)

// WithoutPath returns an error of a file without the name of the file, for messages that have it.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
