package workflow

import "time"

// MaxWait is the longest wait in a definition: of core.delay, or for an answer. A longer one is
// more likely a wrong unit than intended.
const MaxWait = 366 * 24 * time.Hour
