// An OpenID issuer (oidc-provider) on a free port of this machine; it writes its address, and ends with its input.
// Its argument: {"clients": [...], "audience": "…"}, see tests/support/openid_issuer.py.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const { clients, audience } = JSON.parse(process.argv[2]);
const key = (alg, ...how) => ({
  ...generateKeyPairSync(...how).privateKey.export({ format: "jwk" }), alg, use: "sig", kid: alg,
});
const algorithms = ["RS256", "PS256", "ES256", "EdDSA"];
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients,
    jwks: {
      keys: [
        key("RS256", "rsa", { modulusLength: 2048 }),
        key("PS256", "rsa", { modulusLength: 2048 }),
        key("ES256", "ec", { namedCurve: "P-256" }),
        key("EdDSA", "ed25519"),
      ],
    },
    enabledJWA: { idTokenSigningAlgValues: algorithms },
    clientAuthMethods: ["client_secret_basic", "client_secret_post", "none"],
    // Whoever signs in is who they say; `ben` has not shown that his address is his.
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({
        sub: accountId,
        name: accountId[0].toUpperCase() + accountId.slice(1),
        email: `${accountId}@example.com`,
        email_verified: accountId !== "ben",
      }),
    }),
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    scopes: ["openid", "run", "read", "approve"],
    cookies: { keys: [randomUUID()] },
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: () => ({
          scope: "run read approve", audience, accessTokenFormat: "jwt", accessTokenTTL: 600,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(issuer);
});
process.stdin.on("end", () => process.exit(0)).resume();
