// Where the host is: the server writes its base path into the page, so one build serves every path.
const content = document.querySelector<HTMLMetaElement>('meta[name="waybill-base"]')?.content ?? "/";

/** The path below which the host is served, without a slash at its end: "" or "/a/b". */
export const basePath = content.replace(/\/+$/, "");

/** The path of the console itself. */
export const consolePath = `${basePath}/console`;

/** The URL of the host, for commands that a person copies. */
export const hostURL = location.origin + basePath;
