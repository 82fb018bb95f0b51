// The parts of Swagger UI that the page uses; the package has no types of its own.
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  export interface Request {
    url: string;
    method: string;
    headers: Record<string, string>;
    credentials?: RequestCredentials;
  }
  export type Plugin = () => {
    wrapComponents: {
      Markdown: (original: unknown, system: { React: { createElement: (tag: string, props: object, text: string) => unknown } }) => (props: { source?: string }) => unknown;
    };
  };
  interface Options {
    plugins: Plugin[];
    domNode: HTMLElement;
    url: string;
    validatorUrl: null;
    docExpansion: "list" | "full" | "none";
    defaultModelsExpandDepth: number;
    persistAuthorization: boolean;
    requestInterceptor: (request: Request) => Request;
    onComplete: () => void;
  }
  const SwaggerUIBundle: (options: Options) => unknown;
  export default SwaggerUIBundle;
}
