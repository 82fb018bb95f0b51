// The parts of Swagger UI that the page uses; the package has no types of its own.
declare module "swagger-ui-dist/swagger-ui-bundle.js" {
  export interface Request {
    url: string;
    method: string;
    headers: Record<string, string>;
    credentials?: RequestCredentials;
  }
  /** Swagger UI brings a React of its own: what it draws is made by that one. */
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
