package exit

import "errors"

// ErrUsage tmp.
var ErrUsage = With(Usage, errors.New("usage"))
