package hostfile

import (
	"errors"
	"os"
)

// WithoutPath is what befell a file, without its name, which is said already.
func WithoutPath(err error) error {
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return p.Err
	}
	return err
}
