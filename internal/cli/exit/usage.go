package exit

import "errors"

// ErrUsage marks errors in arguments and in the files they name.
var ErrUsage = With(Usage, errors.New("usage"))
