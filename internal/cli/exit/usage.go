package exit

import "errors"

// ErrUsage marks errors of the command line, and of files that it names.
var ErrUsage = With(Usage, errors.New("usage"))
