// Types of the Swagger UI parts that the page uses; the package has none.
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  export interface Request {
    url: string;
    method: string;
    headers: Record<string, string>;
    credentials?: RequestCredentials;
  }
  /** Swagger UI bundles its own React, which must create its elements. */
  interface System {
    React: { createElement: (type: unknown, props: object, ...children: unknown[]) => unknown };
  }
  export type Plugin = () => {
    components: {
      Operations: (props: { getComponent: (name: string, container: true) => unknown; getSystem: () => System }) => unknown;
    };
    wrapComponents: {
      authorizeOperationBtn: () => () => null;
      Markdown: (original: unknown, system: System) => (props: { source?: string }) => unknown;
    };
  };
  interface Options {
    domNode: HTMLElement;
    url: string;
    layout: string;
    plugins: Plugin[];
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
